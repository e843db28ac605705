{{/* The names of all objects begin with the name of the release. */}}
{{- define "volsfu.selector" -}}
app.kubernetes.io/name: volsfu
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "volsfu.labels" -}}
{{ include "volsfu.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{/* The headless service. A pod's name in it is POD.SERVICE.NAMESPACE.svc. */}}
{{- define "volsfu.nodes" -}}
{{ .Release.Name }}-nodes
{{- end }}

{{/* The value of --cluster: the first three pods are seeds, of which one must run. Empty for a single server. */}}
{{- define "volsfu.cluster" -}}
{{- if gt (int .Values.maxReplicas) 1 -}}
embedded://
{{- range $i := until (min 3 (int .Values.maxReplicas) | int) -}}
{{- if $i }},{{ end }}{{ $.Release.Name }}-{{ $i }}.{{ include "volsfu.nodes" $ }}.{{ $.Release.Namespace }}.svc:6222
{{- end -}}
{{- end -}}
{{- end }}
