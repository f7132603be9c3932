"""Values for charts that live elsewhere: of Flux, Argo CD and helmfile."""
