package stack_test

import (
	"errors"
	"net/smtp"
	"net/textproto"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

const message = "From: a@registrar.example\r\nTo: b@demo-school.org\r\nSubject: Hi\r\n\r\nHello.\r\n"

func TestMailCatcher(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "mail")
	catcher, err := stack.StartMailCatcher(t.Context(), stack.MailOptions{Addr: "127.0.0.1:0", Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = catcher.Stop() })
	target, err := url.Parse(catcher.URL())
	if err != nil {
		t.Fatal(err)
	}
	send := func() error {
		return smtp.SendMail(target.Host, nil, "a@registrar.example", []string{"b@demo-school.org"}, []byte(message))
	}
	code := func(err error) int {
		var answer *textproto.Error
		if errors.As(err, &answer) {
			return answer.Code
		}
		return 0
	}

	cases := []struct {
		name   string
		decide stack.Decide
		right  func(error) bool
		kept   int
	}{
		{"taken", nil, func(err error) bool { return err == nil }, 1},
		{"busy", func(stack.Mail) error { return stack.Refuse(451, "later") }, func(err error) bool { return code(err) == 451 }, 0},
		{"refused", func(stack.Mail) error { return stack.Refuse(550, "no") }, func(err error) bool { return code(err) == 550 }, 0},
		{"dropped", func(stack.Mail) error { return stack.ErrDrop }, func(err error) bool { return err != nil && code(err) == 0 }, 1},
		{"taken again", nil, func(err error) bool { return err == nil }, 1},
	}
	total := 0
	for _, c := range cases {
		catcher.SetDecide(c.decide)
		if err := send(); !c.right(err) {
			t.Errorf("%s: the sender sees %v", c.name, err)
		}
		total += c.kept
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		if check.NoError(t, err, "%s: %d files, %d in the journal, want %d", c.name, len(files), len(catcher.All()), total) &&
			check.Equal(t, "number of files", len(files), total, "%s: %d files, %d in the journal, want %d", c.name, len(files), len(catcher.All()), total) {
			check.Equal(t, "number of mails in the journal", len(catcher.All()), total, "%s: %d files, %d in the journal, want %d", c.name, len(files), len(catcher.All()), total)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.eml"))
	check.NoError(check.Now(t), err, "%v %v", files, err)
	check.True(check.Now(t), "there are files", len(files) != 0, "%v %v", files, err)
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	want := "Return-Path: <a@registrar.example>\r\nDelivered-To: b@demo-school.org\r\n" + message
	if got := string(text); got != want {
		t.Errorf("file = %q", got)
	}
	if m := catcher.All()[0]; check.Equal(t, "m.From", m.From, "a@registrar.example", "envelope = %v", m) {
		check.Equal(t, "to", strings.Join(m.To, ","), "b@demo-school.org", "envelope = %v", m)
	}
}

// A test that fails right after the start stops it before it has begun to serve.
func TestACatcherStopsBeforeItServes(t *testing.T) {
	t.Parallel()
	for range 100 {
		catcher, err := stack.StartMailCatcher(t.Context(), stack.MailOptions{Addr: "127.0.0.1:0"})
		check.NoError(check.Now(t), err, "")
		check.NoError(t, catcher.Stop(), "")
	}
}
