"""The webhook's cluster side on real API servers, without the webhook's server."""
