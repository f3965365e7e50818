{{- /* What every object of a release carries. */ -}}
{{- define "duestream.labels" -}}
{{ include "duestream.release" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- /* By which its objects find each other. A selector cannot be changed later, so it has nothing that changes. */ -}}
{{- define "duestream.release" -}}
app.kubernetes.io/name: duestream
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "duestream.secret" -}}
{{ .Values.secret.name | default .Release.Name }}
{{- end -}}

{{- /* What the pods of daemons and workers have in common. No pod asks the API of Kubernetes, and none needs the variables that
       Kubernetes makes for each service. */ -}}
{{- define "duestream.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  {{- toYaml .Values.podSecurityContext | nindent 2 }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- /* The address of Redis and the token are files: no password is an argument or a variable. */ -}}
{{- define "duestream.env" -}}
- name: DUESTREAM_CONFIG
  value: /etc/duestream/config/duestream.yaml
- name: DUESTREAM_REDIS_URL_FILE
  value: /etc/duestream/secret/redis-url
- name: DUESTREAM_HTTP__HOST
  value: 0.0.0.0
- name: DUESTREAM_HTTP__TOKEN_FILE
  value: /etc/duestream/secret/token
{{- end -}}

{{- define "duestream.mounts" -}}
- name: config
  mountPath: /etc/duestream/config
  readOnly: true
- name: secret
  mountPath: /etc/duestream/secret
  readOnly: true
{{- end -}}

{{- define "duestream.volumes" -}}
- name: config
  configMap:
    name: {{ .Release.Name }}
- name: secret
  secret:
    secretName: {{ include "duestream.secret" . }}
    # 0440: its group, fsGroup, may read it, and nobody else.
    defaultMode: 288
{{- end -}}

{{- /* Probes carry no token. A process whose Redis is away lives and is not ready: no restart would help it. */ -}}
{{- define "duestream.probes" -}}
startupProbe:
  httpGet: { path: /livez, port: http }
  periodSeconds: 2
  # A minute, for modules of handlers that take long to load. A start that does not reach Redis ends by itself after 5 s.
  failureThreshold: 30
livenessProbe:
  httpGet: { path: /livez, port: http }
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 3
readinessProbe:
  httpGet: { path: /readyz, port: http }
  periodSeconds: 5
  # It asks Redis, which may take redis.commandTimeout, 4 s.
  timeoutSeconds: 5
  failureThreshold: 2
{{- end -}}
