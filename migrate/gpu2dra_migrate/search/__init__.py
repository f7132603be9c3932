"""Which files may hold a legacy request."""
