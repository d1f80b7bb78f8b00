{{- define "registrar.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "registrar.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains (include "registrar.name" .) .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "registrar.name" .) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Labels that tell this release's pods; a component's pods have one label more. */}}
{{- define "registrar.selector" -}}
app.kubernetes.io/name: {{ include "registrar.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "registrar.labels" -}}
{{ include "registrar.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: registrar
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Whether the databases of the evaluation are wanted and nothing else is given. */}}
{{- define "registrar.ownPostgres" -}}
{{- if and .Values.evaluation.enabled (not .Values.database.url) (not .Values.database.existingSecret) -}}true{{- end -}}
{{- end -}}
{{- define "registrar.ownValkey" -}}
{{- if and .Values.evaluation.enabled (not .Values.redis.url) (not .Values.redis.existingSecret) -}}true{{- end -}}
{{- end -}}

{{- define "registrar.publicUrl" -}}
{{- default "http://localhost:8080" .Values.publicUrl -}}
{{- end -}}

{{/* image: {root, image: {repository, tag, digest}}. A released chart names its images with their digests. */}}
{{- define "registrar.image" -}}
{{- $image := .image -}}
{{- $name := printf "%s/%s" (trimSuffix "/" .root.Values.image.registry) $image.repository -}}
{{- $tag := $image.tag | default .root.Values.image.tag -}}
{{- $digest := $image.digest -}}
{{- if not (or $digest $tag) -}}
{{- range index (.root.Chart.Annotations | default dict) "artifacthub.io/images" | default "" | fromYamlArray -}}
{{- if eq .name $image.repository -}}{{- $digest = last (splitList "@" .image) -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- if $digest -}}{{ $name }}@{{ $digest }}{{- else -}}{{ $name }}:{{ $tag | default .root.Chart.AppVersion }}{{- end -}}
{{- end -}}

{{/* Where each secret is: the names of Secret and key. */}}
{{- define "registrar.secretRef" -}}
{{- $v := index .root.Values .value -}}
{{- if $v.existingSecret -}}
{name: {{ $v.existingSecret | quote }}, key: {{ $v.existingSecretKey | quote }}}
{{- else -}}
{name: {{ printf "%s-%s" (include "registrar.fullname" .root) .own | quote }}, key: {{ .key }}}
{{- end -}}
{{- end -}}

{{/* Whether the cluster chooses the ids of users and groups. */}}
{{- define "registrar.omitIds" -}}
{{- if or (eq .Values.omitIds "always") (and (eq .Values.omitIds "auto") (.Capabilities.APIVersions.Has "security.openshift.io/v1")) -}}true{{- end -}}
{{- end -}}

{{- define "registrar.podSecurityContext" -}}
{{- if include "registrar.omitIds" . -}}
{{ toYaml (omit .Values.podSecurityContext "runAsUser" "runAsGroup" "fsGroup") }}
{{- else -}}
{{ toYaml .Values.podSecurityContext }}
{{- end -}}
{{- end -}}

{{- define "registrar.securityContext" -}}
{{ toYaml .Values.securityContext }}
{{- end -}}

{{/* Whom a program trusts, and what an address of PostgreSQL may leave out. What the address says is stronger. */}}
{{- define "registrar.databaseEnv" -}}
{{- if or .Values.caBundle.secret .Values.caBundle.configMap }}
- {name: SSL_CERT_DIR, value: /etc/registrar/ca-bundle}
{{- end }}
{{- with .Values.database.hosts }}
- {name: PGHOST, value: {{ join "," . | quote }}}
- {name: PGPORT, value: {{ $.Values.database.port | quote }}}
{{- end }}
{{- if .Values.database.caSecret }}
- {name: PGSSLMODE, value: verify-full}
- {name: PGSSLROOTCERT, value: /etc/registrar/database-ca/ca.crt}
{{- end }}
{{- if .Values.database.clientCertSecret }}
- {name: PGSSLCERT, value: /etc/registrar/database-cert/tls.crt}
- {name: PGSSLKEY, value: /etc/registrar/database-cert/tls.key}
{{- end }}
{{- end -}}

{{/* The certificates of a program: of the dictionary, root and stores, a list of database and redis. */}}
{{- define "registrar.certificateMounts" -}}
{{- if or .root.Values.caBundle.secret .root.Values.caBundle.configMap }}
- {name: ca-bundle, mountPath: /etc/registrar/ca-bundle, readOnly: true}
{{- end }}
{{- range $store := .stores }}
{{- $values := index $.root.Values $store }}
{{- if $values.caSecret }}
- {name: {{ $store }}-ca, mountPath: /etc/registrar/{{ $store }}-ca, readOnly: true}
{{- end }}
{{- if $values.clientCertSecret }}
- {name: {{ $store }}-cert, mountPath: /etc/registrar/{{ $store }}-cert, readOnly: true}
{{- end }}
{{- end }}
{{- end -}}

{{- define "registrar.certificateVolumes" -}}
{{- with .root.Values.caBundle }}
{{- if .secret }}
- name: ca-bundle
  secret:
    secretName: {{ .secret }}
    items: [{key: {{ .key | quote }}, path: ca.crt}]
{{- else if .configMap }}
- name: ca-bundle
  configMap:
    name: {{ .configMap }}
    items: [{key: {{ .key | quote }}, path: ca.crt}]
{{- end }}
{{- end }}
{{- range $store := .stores }}
{{- $values := index $.root.Values $store }}
{{- if $values.caSecret }}
- name: {{ $store }}-ca
  secret:
    secretName: {{ $values.caSecret }}
    defaultMode: 0440
    items: [{key: {{ $values.caSecretKey | quote }}, path: ca.crt}]
{{- end }}
{{- if $values.clientCertSecret }}
- name: {{ $store }}-cert
  secret:
    secretName: {{ $values.clientCertSecret }}
    defaultMode: 0440
    items: [{key: tls.crt, path: tls.crt}, {key: tls.key, path: tls.key}]
{{- end }}
{{- end }}
{{- end -}}

{{/* Environment of every program. */}}
{{- define "registrar.env" -}}
- name: DATABASE_URL
  valueFrom:
    {{- if .root.Values.database.rolesSecret }}
    secretKeyRef: {name: {{ .root.Values.database.rolesSecret | quote }}, key: {{ .component }}}
    {{- else }}
    secretKeyRef: {{ include "registrar.secretRef" (dict "root" .root "value" "database" "own" "connections" "key" "DATABASE_URL") }}
    {{- end }}
{{- include "registrar.databaseEnv" .root }}
- {name: SECRET_KEYSET_FILE, value: /etc/registrar/keyset/keyset.json}
- {name: PRIVATE_ADDR, value: ":9090"}
- {name: LOG_LEVEL, value: {{ .root.Values.logLevel | quote }}}
- {name: SCHEMA_WAIT, value: {{ .root.Values.schemaWait | quote }}}
# Go plans its garbage collection by the container's memory and CPU.
- name: GOMEMLIMIT
  valueFrom: {resourceFieldRef: {resource: limits.memory, divisor: "1"}}
{{- end -}}

{{/* Profiles, of the programs that have them. */}}
{{- define "registrar.pprofEnv" -}}
{{- if .Values.pprof }}
- {name: PPROF, value: "true"}
{{- end }}
{{- end -}}

{{/* What is given to webhook-sender and to the API that registers receivers. */}}
{{- define "registrar.webhookEnv" -}}
{{- with .Values.webhooks.allowNetworks }}
- {name: WEBHOOK_ALLOW_NETWORKS, value: {{ join "," . | quote }}}
{{- end }}
{{- if .Values.webhooks.allowHTTP }}
- {name: WEBHOOK_ALLOW_HTTP, value: "true"}
{{- end }}
{{- end -}}

{{/* The authorities of receivers and LMSes, for the programs that call them. */}}
{{- define "registrar.receiverEnv" -}}
{{- with .Values.webhooks.caSecret }}
- {name: WEBHOOK_CA_FILE, value: /etc/registrar/ca/{{ $.Values.webhooks.caSecretKey }}}
{{- end }}
{{- end -}}

{{- define "registrar.receiverMounts" -}}
{{- with .Values.webhooks.caSecret -}}
- {name: ca, mountPath: /etc/registrar/ca, readOnly: true}
{{- end }}
{{- end -}}

{{- define "registrar.receiverVolumes" -}}
{{- with .Values.webhooks.caSecret -}}
- {name: ca, secret: {secretName: {{ quote . }}, defaultMode: 0440}}
{{- end }}
{{- end -}}

{{/* Where PostgreSQL, Redis and DNS may be reached. */}}
{{- define "registrar.storeEgress" -}}
{{- $ := .root -}}
{{- range $store := list (dict "values" $.Values.database "own" (include "registrar.ownPostgres" $) "component" "postgres") (dict "values" $.Values.redis "own" (include "registrar.ownValkey" $) "component" "valkey") }}
- ports:
    - {protocol: TCP, port: {{ $store.values.port }}}
    {{- with $store.values.sentinelPort }}
    - {protocol: TCP, port: {{ . }}}
    {{- end }}
  {{- if $store.own }}
  to:
    - podSelector:
        matchLabels:
          {{- include "registrar.selector" $ | nindent 10 }}
          app.kubernetes.io/component: {{ $store.component }}
  {{- else if $store.values.networks }}
  to:
    {{- range $store.values.networks }}
    - ipBlock: {cidr: {{ . | quote }}}
    {{- end }}
  {{- end }}
{{- end }}
- ports: [{protocol: UDP, port: 53}, {protocol: TCP, port: 53}]
  {{- with $.Values.networkPolicy.dnsTo }}
  to:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- with $.Values.networkPolicy.extraEgress }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Who reads the private ports: helm test, and who is named. A node's probes need no policy. */}}
{{- define "registrar.metricsIngress" -}}
- ports: [{protocol: TCP, port: private}]
  from:
    {{- with .Values.networkPolicy.metricsFrom }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    - podSelector:
        matchLabels:
          {{- include "registrar.selector" $ | nindent 10 }}
          app.kubernetes.io/component: test
{{- end -}}

{{/* The namespaces that the operator serves, separated by spaces; none for all. */}}
{{- define "registrar.operatorNamespaces" -}}
{{- if not (or .Values.operator.clusterWide (include "registrar.namespaceRequirements" .)) -}}
{{- .Values.operator.watchNamespaces | default (list .Release.Namespace) | join " " -}}
{{- end -}}
{{- end -}}

{{/* What operator.watchNamespaceSelector asks of a namespace, a requirement a line in JSON: key, operator, values. */}}
{{- define "registrar.namespaceRequirements" -}}
{{- $s := .Values.operator.watchNamespaceSelector -}}
{{- range $key, $value := $s.matchLabels }}
{{ dict "key" $key "operator" "In" "values" (list $value) | toJson }}
{{- end }}
{{- range $s.matchExpressions }}
{{ . | toJson }}
{{- end }}
{{- end -}}

{{/* The same as for kubectl -l. */}}
{{- define "registrar.namespaceSelector" -}}
{{- $all := list -}}
{{- range include "registrar.namespaceRequirements" . | splitList "\n" | compact -}}
{{- $r := fromJson . -}}
{{- if eq $r.operator "Exists" -}}{{- $all = append $all $r.key -}}
{{- else if eq $r.operator "DoesNotExist" -}}{{- $all = append $all (printf "!%s" $r.key) -}}
{{- else -}}{{- $all = append $all (printf "%s %s (%s)" $r.key (lower $r.operator) (join "," $r.values)) -}}
{{- end -}}
{{- end -}}
{{- join "," $all -}}
{{- end -}}

{{/* The ClusterRole that the operator binds to itself in the selected namespaces; "" where it binds none. The name of a release
is not enough for what is the cluster's. */}}
{{- define "registrar.namespaceRole" -}}
{{- if and .Values.operator.bindNamespaces (include "registrar.namespaceRequirements" .) -}}
{{- printf "%s-%s-operator-namespaced" .Release.Namespace (include "registrar.fullname" .) -}}
{{- end -}}
{{- end -}}

{{/* The addresses that the values hold. */}}
{{- define "registrar.connections" -}}
{{- if not .Values.database.existingSecret }}{{ if .Values.database.url }}
DATABASE_URL: {{ .Values.database.url | quote }}
{{- end }}{{ end }}
{{- if not .Values.database.readSecret }}{{ if .Values.database.readUrl }}
DATABASE_READ_URL: {{ .Values.database.readUrl | quote }}
{{- end }}{{ end }}
{{- if not .Values.redis.existingSecret }}{{ if .Values.redis.url }}
REDIS_URL: {{ .Values.redis.url | quote }}
{{- end }}{{ end }}
{{- if not .Values.mail.existingSecret }}
SMTP_URL: {{ default "smtp://mail-is-not-configured.invalid:25" .Values.mail.smtpUrl | quote }}
{{- end }}
{{- end -}}

{{/* A Tink keyset with one AES-256-GCM key, as `api-server new-keyset` prints it. The key's protobuf is its field 3, 32 bytes. */}}
{{- define "registrar.newKeyset" -}}
{{- $id := randInt 1 2147483647 -}}
{{- $key := printf "\x1a\x20%s" (randBytes 32 | b64dec) | b64enc -}}
{"primaryKeyId":{{ $id }},"key":[{"keyData":{"typeUrl":"type.googleapis.com/google.crypto.tink.AesGcmKey","value":{{ $key | quote }},"keyMaterialType":"SYMMETRIC"},"status":"ENABLED","keyId":{{ $id }},"outputPrefixType":"TINK"}]}
{{- end -}}

{{/* Of the dictionary: root, and the id that the store's image runs as. */}}
{{- define "registrar.storeSecurity" -}}
runAsNonRoot: true
{{- if not (include "registrar.omitIds" .root) }}
runAsUser: {{ .id }}
runAsGroup: {{ .id }}
fsGroup: {{ .id }}
{{- end }}
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "registrar.redisEnv" -}}
- name: REDIS_URL
  valueFrom:
    secretKeyRef: {{ include "registrar.secretRef" (dict "root" . "value" "redis" "own" "connections" "key" "REDIS_URL") }}
{{- if .Values.redis.caSecret }}
- {name: REDIS_CA_FILE, value: /etc/registrar/redis-ca/ca.crt}
{{- end }}
{{- if .Values.redis.clientCertSecret }}
- {name: REDIS_CERT_FILE, value: /etc/registrar/redis-cert/tls.crt}
- {name: REDIS_KEY_FILE, value: /etc/registrar/redis-cert/tls.key}
{{- end }}
{{- end -}}

{{- define "registrar.sandboxEnv" -}}
{{- if .Values.sandboxes.existingSecret }}
- name: SANDBOX_DATABASE_URL
  valueFrom:
    secretKeyRef: {name: {{ .Values.sandboxes.existingSecret | quote }}, key: {{ .Values.sandboxes.existingSecretKey | quote }}}
{{- end }}
{{- end -}}

{{- define "registrar.apiEnv" -}}
{{ include "registrar.redisEnv" . }}
{{- include "registrar.sandboxEnv" . }}
{{- if or .Values.database.readSecret .Values.database.readUrl }}
- name: DATABASE_READ_URL
  valueFrom:
    secretKeyRef: {name: {{ .Values.database.readSecret | default (printf "%s-connections" (include "registrar.fullname" .)) | quote }}, key: {{ ternary .Values.database.readSecretKey "DATABASE_READ_URL" (ne .Values.database.readSecret "") }}}
{{- end }}
- {name: HTTP_ADDR, value: ":8080"}
- {name: PLATFORM_ADDR, value: ":8081"}
- name: PLATFORM_KEY
  valueFrom:
    secretKeyRef: {{ include "registrar.secretRef" (dict "root" . "value" "platformKey" "own" "keys" "key" "PLATFORM_KEY") }}
{{- $platformKey := include "registrar.secretRef" (dict "root" . "value" "platformKey" "own" "keys" "key" "PLATFORM_KEY") | fromYaml }}
- name: PLATFORM_KEY_PREVIOUS
  valueFrom:
    secretKeyRef: {name: {{ $platformKey.name | quote }}, key: {{ .Values.platformKey.previousSecretKey | quote }}, optional: true}
- {name: PUBLIC_URL, value: {{ include "registrar.publicUrl" . | quote }}}
- {name: PLATFORM_TIME_ZONE, value: {{ .Values.timeZone | quote }}}
- {name: MAX_IN_FLIGHT, value: {{ .Values.apiServer.maxInFlight | quote }}}
- {name: MAX_CONNECTIONS, value: {{ .Values.apiServer.maxConnections | quote }}}
- {name: SAFE_EXAM_BROWSER_AVAILABLE, value: {{ .Values.safeExamBrowser | quote }}}
{{- with .Values.suppressedDomains }}
- {name: SUPPRESSED_DOMAINS, value: {{ join "," . | quote }}}
{{- end }}
{{- with .Values.trustedProxies }}
- {name: TRUSTED_PROXIES, value: {{ join "," . | quote }}}
{{- end }}
{{- include "registrar.pprofEnv" . }}
{{- with .Values.webhooks.egressAddresses }}
- {name: EGRESS_ADDRESSES, value: {{ join "," . | quote }}}
{{- end }}
{{- include "registrar.webhookEnv" . }}
{{- include "registrar.receiverEnv" . }}
{{- end -}}

{{- define "registrar.workerEnv" -}}
{{ include "registrar.redisEnv" . }}
{{- include "registrar.sandboxEnv" . }}
- name: SMTP_URL
  valueFrom:
    secretKeyRef: {{ include "registrar.secretRef" (dict "root" . "value" "mail" "own" "connections" "key" "SMTP_URL") }}
- {name: MAIL_FROM, value: {{ default "Registrar <no-reply@registrar.invalid>" .Values.mail.from | quote }}}
- {name: PLATFORM_TIME_ZONE, value: {{ .Values.timeZone | quote }}}
- {name: PUBLIC_URL, value: {{ include "registrar.publicUrl" . | quote }}}
{{- with .Values.suppressedDomains }}
- {name: SUPPRESSED_DOMAINS, value: {{ join "," . | quote }}}
{{- end }}
{{- include "registrar.pprofEnv" . }}
- {name: EMAIL_CONCURRENCY, value: {{ .Values.worker.emailConcurrency | quote }}}
- {name: WEBHOOK_RETENTION_DAYS, value: {{ .Values.retention.webhooks | quote }}}
- {name: MAIL_RETENTION_DAYS, value: {{ .Values.retention.mails | quote }}}
- {name: PLAN_RETENTION_DAYS, value: {{ .Values.retention.plans | quote }}}
- {name: ROSTER_RETENTION_DAYS, value: {{ .Values.retention.rosters | quote }}}
- {name: AUDIT_RETENTION_DAYS, value: {{ .Values.retention.audit | quote }}}
- name: ASYNQ_PASSWORD
  valueFrom:
    secretKeyRef: {{ include "registrar.secretRef" (dict "root" . "value" "queuesPage" "own" "keys" "key" "ASYNQ_PASSWORD") }}
{{- end -}}

{{- define "registrar.senderEnv" -}}
{{ include "registrar.redisEnv" . }}
{{- include "registrar.sandboxEnv" . }}
- {name: WEBHOOK_CONCURRENCY, value: {{ .Values.webhookSender.concurrency | quote }}}
{{- include "registrar.pprofEnv" . }}
{{- include "registrar.webhookEnv" . }}
{{- include "registrar.receiverEnv" . }}
{{- end -}}

{{- define "registrar.operatorEnv" -}}
{{ include "registrar.redisEnv" . }}
- {name: CLUSTER_NAME, value: {{ .Values.operator.clusterName | quote }}}
- {name: LEASE_NAME, value: {{ include "registrar.fullname" . }}-operator}
{{- with include "registrar.operatorNamespaces" . }}
- {name: WATCH_NAMESPACES, value: {{ . | replace " " "," | quote }}}
{{- end }}
- {name: PUBLIC_URL, value: {{ include "registrar.publicUrl" . | quote }}}
{{- with .Values.suppressedDomains }}
- {name: SUPPRESSED_DOMAINS, value: {{ join "," . | quote }}}
{{- end }}
{{- with include "registrar.namespaceSelector" . }}
- {name: WATCH_NAMESPACE_SELECTOR, value: {{ . | quote }}}
{{- end }}
{{- with include "registrar.namespaceRole" . }}
- {name: NAMESPACE_ROLE, value: {{ . | quote }}}
{{- end }}
{{- with .Values.operator.className }}
- {name: CLASS_NAME, value: {{ . | quote }}}
{{- end }}
{{- if .Values.operator.organizations.enabled }}
- {name: ORGANIZATIONS, value: "true"}
{{- include "registrar.sandboxEnv" . }}
{{- end }}
{{- include "registrar.webhookEnv" . }}
{{- end -}}

{{/* The programs that are installed, separated by spaces. */}}
{{- define "registrar.programs" -}}
api-server worker webhook-sender{{ if .Values.operator.enabled }} operator{{ end }}
{{- end -}}

{{/*
The groups of rules, each of its own namespace's metrics alone: absent() would be blind beside another installation.
metrics.prometheusRule.alerts changes alerts by their names.
*/}}
{{- define "registrar.rules" -}}
{{- $own := printf "namespace=%q" .Release.Namespace -}}
{{- $changes := .Values.metrics.prometheusRule.alerts -}}
{{- $known := dict -}}
{{- $groups := list -}}
{{- range $path, $_ := .Files.Glob "files/rules/*.yaml" -}}
{{- if or (ne (base $path) "operator.yaml") $.Values.operator.enabled -}}
{{- range ($.Files.Get $path | replace `namespace=~".*"` $own | fromYaml).groups -}}
{{- $rules := list -}}
{{- range .rules -}}
{{- $rule := . -}}
{{- $change := dict -}}
{{- if .alert -}}
{{- $_ := set $known .alert true -}}
{{- $change = get $changes .alert | default dict -}}
{{- with $change.severity }}{{ $_ := set $rule.labels "severity" . }}{{ end -}}
{{- with $change.for }}{{ $_ := set $rule "for" . }}{{ end -}}
{{- if hasKey $change "threshold" -}}
{{- if not (regexMatch " > [0-9.]+" .expr) -}}
{{- fail (printf "metrics.prometheusRule.alerts.%s.threshold: this alert has none; leave it out" .alert) -}}
{{- end -}}
{{- $_ := set $rule "expr" (regexReplaceAll " > [0-9.]+( [*] [0-9]+)?" .expr (printf " > %v" $change.threshold)) -}}
{{- end -}}
{{- end -}}
{{- if ne (toString $change.enabled) "false" -}}
{{- $rules = append $rules $rule -}}
{{- end -}}
{{- end -}}
{{- if $rules }}{{ $groups = append $groups (set . "rules" $rules) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $name, $_ := $changes -}}
{{- if not (hasKey $known $name) -}}
{{- fail (printf "metrics.prometheusRule.alerts.%s: there is no such alert; there are %s" $name (keys $known | sortAlpha | join ", ")) -}}
{{- end -}}
{{- end -}}
{{- toYaml $groups -}}
{{- end -}}
