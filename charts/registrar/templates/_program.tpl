{{/*
A program's Deployment. Of the dictionary:
  root; component: its name; values: its part of the values; replicas: a number, or "" where an autoscaler decides;
  env: YAML of its own variables; ports: a dictionary of further ports; grace: seconds; volumes, mounts: YAML
*/}}
{{- define "registrar.program" -}}
{{- $ := .root -}}
{{- $component := .component -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "registrar.fullname" $ }}-{{ .component }}
  namespace: {{ $.Release.Namespace }}
  labels:
    {{- include "registrar.labels" $ | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
spec:
  {{- if ne (toString .replicas) "" }}
  replicas: {{ .replicas }}
  {{- end }}
  revisionHistoryLimit: 5
  # A new pod is ready before an old one goes.
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}
  selector:
    matchLabels:
      {{- include "registrar.selector" $ | nindent 6 }}
      app.kubernetes.io/component: {{ .component }}
  template:
    metadata:
      labels:
        {{- include "registrar.selector" $ | nindent 8 }}
        {{- with $.Values.commonLabels }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
        app.kubernetes.io/component: {{ .component }}
        registrar.dev/program: {{ .component }}
        {{- with .values.podLabels }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      annotations:
        kubectl.kubernetes.io/default-container: {{ .component }}
        checksum/connections: {{ include "registrar.connections" $ | sha256sum }}
        {{- with .values.podAnnotations }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    spec:
      serviceAccountName: {{ if or $.Values.serviceAccount.create .token }}{{ include "registrar.fullname" $ }}-{{ .component }}{{ else }}default{{ end }}
      automountServiceAccountToken: {{ .token | default false }}
      enableServiceLinks: false
      terminationGracePeriodSeconds: {{ .grace }}
      securityContext:
        {{- include "registrar.podSecurityContext" $ | nindent 8 }}
      {{- with $.Values.imagePullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .values.priorityClassName | default $.Values.priorityClassName }}
      priorityClassName: {{ . }}
      {{- end }}
      {{- with .values.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .values.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .values.affinity }}
      affinity:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- if $.Values.topologySpread.enabled }}
      topologySpreadConstraints:
        {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
        - topologyKey: {{ . }}
          maxSkew: 1
          whenUnsatisfiable: {{ $.Values.topologySpread.whenUnsatisfiable }}
          matchLabelKeys: [pod-template-hash]
          labelSelector:
            matchLabels:
              {{- include "registrar.selector" $ | nindent 14 }}
              app.kubernetes.io/component: {{ $component }}
        {{- end }}
      {{- end }}
      {{- with .values.extraInitContainers }}
      initContainers:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      containers:
        - name: {{ .component }}
          image: {{ include "registrar.image" (dict "root" $ "image" .values.image) }}
          imagePullPolicy: {{ $.Values.image.pullPolicy }}
          securityContext:
            {{- include "registrar.securityContext" $ | nindent 12 }}
          env:
            {{- include "registrar.env" (dict "root" $ "component" .component) | nindent 12 }}
            {{- with .env }}
            {{- . | nindent 12 }}
            {{- end }}
            {{- with .values.extraEnv }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
          {{- with .values.extraEnvFrom }}
          envFrom:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          ports:
            - {name: private, containerPort: 9090}
            {{- range $name, $port := .ports }}
            - {name: {{ $name }}, containerPort: {{ $port }}}
            {{- end }}
          # The schema may still be on its way: schemaWait bounds the wait, not this.
          startupProbe: {httpGet: {path: /healthz, port: private}, periodSeconds: 2, failureThreshold: 300}
          livenessProbe: {httpGet: {path: /healthz, port: private}, periodSeconds: 10, timeoutSeconds: 5, failureThreshold: 6}
          readinessProbe: {httpGet: {path: /readyz, port: private}, periodSeconds: 5, timeoutSeconds: 3, failureThreshold: 2}
          {{- if .preStop }}
          # What routes to the pod learns of its end before it stops listening.
          lifecycle: {preStop: {sleep: {seconds: {{ .preStop }}}}}
          {{- end }}
          resources:
            {{- toYaml .values.resources | nindent 12 }}
          volumeMounts:
            - {name: keyset, mountPath: /etc/registrar/keyset, readOnly: true}
            - {name: tmp, mountPath: /tmp}
            {{- with include "registrar.certificateMounts" (dict "root" $ "stores" (list "database" "redis")) | trim }}
            {{- . | nindent 12 }}
            {{- end }}
            {{- with .mounts }}
            {{- . | nindent 12 }}
            {{- end }}
            {{- with .values.extraVolumeMounts }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
        {{- with .values.extraContainers }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      volumes:
        {{- $keyset := include "registrar.secretRef" (dict "root" $ "value" "keyset" "own" "keys" "key" "SECRET_KEYSET") | fromYaml }}
        - name: keyset
          secret:
            secretName: {{ $keyset.name }}
            defaultMode: 0440
            items: [{key: {{ $keyset.key | quote }}, path: keyset.json}]
        - {name: tmp, emptyDir: {sizeLimit: 512Mi}}
        {{- with include "registrar.certificateVolumes" (dict "root" $ "stores" (list "database" "redis")) | trim }}
        {{- . | nindent 8 }}
        {{- end }}
        {{- with .volumes }}
        {{- . | nindent 8 }}
        {{- end }}
        {{- with .values.extraVolumes }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
{{- end -}}
