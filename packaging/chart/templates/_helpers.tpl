{{- define "kubediff.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "kubediff.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains (include "kubediff.name" .) .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "kubediff.name" .) | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "kubediff.selector" -}}
app.kubernetes.io/name: {{ include "kubediff.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "kubediff.labels" -}}
{{ include "kubediff.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "kubediff.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "kubediff.fullname" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{/* The configuration, with what the chart decides: where the pod listens, and that Secrets it may not read are not watched. */}}
{{- define "kubediff.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- if not $config.cluster }}{{ $config = omit $config "cluster" }}{{ end -}}
{{- $_ := set $config "listen" (printf ":%d" (int .Values.service.port)) -}}
{{- if .Values.keySecret }}{{ $_ := set $config "keyFile" "/etc/kubediff-key/kubediff.key" }}{{ end -}}
{{- if .Values.web.enabled -}}
{{- $tls := dict "certificate" "/etc/kubediff-tls/tls.crt" "key" "/etc/kubediff-tls/tls.key" -}}
{{- $_ := set $config "web" (dict "listen" (printf ":%d" (int .Values.web.port)) "tls" $tls) -}}
{{- end -}}
{{- if not .Values.rbac.secrets -}}
{{- $watch := $config.watch | default dict -}}
{{- $exclude := $watch.exclude | default dict -}}
{{- $_ := set $exclude "resources" (append ($exclude.resources | default list) "secrets" | uniq) -}}
{{- $_ := set $watch "exclude" $exclude -}}
{{- $_ := set $config "watch" $watch -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}
