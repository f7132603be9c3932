"""Prints what /readyz says; exits 0 when it is ready, 1 when not or when it could not be reached."""  # noqa: INP001 - a script

import ssl
import sys
import urllib.error
import urllib.request

# Readiness looks at the certificate as the API server would; here it is enough to be told.
unchecked = ssl.create_default_context()
unchecked.check_hostname = False
unchecked.verify_mode = ssl.CERT_NONE
try:
    with urllib.request.urlopen(sys.argv[1], timeout=10, context=unchecked) as answer:  # noqa: S310 - the chart's
        print(answer.read().decode())
except urllib.error.HTTPError as refused:
    sys.exit(f"not ready: {refused.read().decode()}")
except OSError as error:
    sys.exit(f"{sys.argv[1]} cannot be reached: {error}")
