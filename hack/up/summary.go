package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

func (v *registrar) baseURL() string { return v.settings.PublicURL() + "/api/v1/" }

// environment is .registrar/env: everything that a script, a test or a benchmark needs, for
// `. .registrar/env` in a shell.
func (v *registrar) environment() string {
	private := func(port int, path string) string { return fmt.Sprintf("http://127.0.0.1:%d%s", port, path) }
	ports := v.settings.Ports
	variables := []struct{ name, value string }{
		{"BASE_URL", v.baseURL()},
		{"PLATFORM_URL", v.settings.PlatformURL()},
		{"PLATFORM_KEY", v.state.PlatformKey},
		{"API_KEY", v.state.APIKey},
		{"API_KEY_READ_ONLY", v.state.APIKeyReadOnly},
		{"ORGANIZATION", demoSlug},
		{"CONSOLE_URL", v.settings.PublicURL() + "/console/"},
		{"CONSOLE_EMAIL", demoOwner},
		{"CONSOLE_PASSWORD", v.state.ConsolePassword},
		{"DATABASE_URL", v.settings.DatabaseURL},
		{"REDIS_URL", v.settings.RedisURL},
		{"MAIL_DIR", v.path("mail")},
		{"RECEIVER_URL", v.receiver.URL(receiverPath)},
		{"RECEIVER_LOG", v.path("receiver.jsonl")},
		{"METRICS_API_SERVER", private(ports.APIPrivate, "/metrics")},
		{"METRICS_WORKER", private(ports.WorkerPrivate, "/metrics")},
		{"METRICS_WEBHOOK_SENDER", private(ports.SenderPrivate, "/metrics")},
		{"ASYNQ_URL", private(ports.WorkerPrivate, "/asynq")},
	}
	var text, names strings.Builder
	for _, variable := range variables {
		fmt.Fprintf(&text, "%s=%s\n", variable.name, quote(variable.value))
		names.WriteString(" " + variable.name)
	}
	return text.String() + "export" + names.String() + "\n"
}

// summary is what a person reads when everything runs.
func (v *registrar) summary() string {
	return fmt.Sprintf(`Registrar runs on this machine.

  Partner API   %s   API_KEY %s
  Platform API  %s
  Console       %s   %s, password %s
  Tasks         http://127.0.0.1:%d/asynq
  Mail          .registrar/mail            one file a message; no mail leaves this machine
  Webhooks      .registrar/receiver.jsonl  one line a request
  Logs          .registrar/logs
  For scripts   . .registrar/env

Try it: the answer holds a set-password link, and two webhooks and a mail follow.

  curl -sS -X POST %sprovision/student/ \
    -H 'X-API-Key: %s' -H 'Content-Type: application/json' \
    -d '{"email": "noor@demo-school.org", "first_name": "Noor", "courses": ["ielts"]}'

Ctrl-C or `+"`make down`"+` stops it; the data stay.
`,
		v.baseURL(), v.state.APIKey, v.settings.PlatformURL(), v.settings.PublicURL()+"/console/", demoOwner, v.state.ConsolePassword,
		v.settings.Ports.WorkerPrivate, v.baseURL(), v.state.APIKey)
}

// showRunning answers a second `make up` while the first one runs.
func (s site) showRunning(out io.Writer) error {
	text, err := os.ReadFile(s.own("summary"))
	if errors.Is(err, os.ErrNotExist) {
		return errors.New("another `make up` is starting this stack")
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "It runs already.\n\n%s", text)
	return nil
}
