"""The admission webhook: rewrites Pods as they are created and makes the templates that they need."""
