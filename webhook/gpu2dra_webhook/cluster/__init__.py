"""What the webhook knows and does in the cluster: caches, templates, Events, the janitor."""
