{{- define "app.resources" }}
limits:
  nvidia.com/gpu: {{ .Values.gpus }}
{{- end }}
