{{- define "berth.labels" -}}
app.kubernetes.io/name: {{ .Values.name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "berth.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag }}
{{- end }}
{{- end }}

{{- define "berth.config" -}}
{{- $lease := dict "resourceName" .Values.name "resourceNamespace" .Release.Namespace }}
{{- $profile := .Values.schedulerName }}
{{- if eq .Values.mode "replace" }}
{{- $lease = dict "resourceName" "kube-scheduler" "resourceNamespace" "kube-system" }}
{{- $profile = "default-scheduler" }}
{{- else if eq .Values.mode "shadow" }}
{{- $profile = "default-scheduler" }}
{{- else if ne .Values.mode "beside" }}
{{- fail (printf "mode: %q must be shadow, beside or replace" .Values.mode) }}
{{- end }}
{{- $config := dict
  "apiVersion" "kubescheduler.config.k8s.io/v1"
  "kind" "KubeSchedulerConfiguration"
  "leaderElection" $lease
  "clientConnection" (dict "qps" .Values.qps "burst" .Values.burst)
  "profiles" (list (dict "schedulerName" $profile)) }}
{{- toYaml (mergeOverwrite $config .Values.config) }}
{{- end }}
