package pages_test

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// chromium starts a real browser; whatever it complains of is a fault of the page.
func chromium(t *testing.T) context.Context {
	t.Helper()
	path := os.Getenv("CHROMIUM")
	if path == "" {
		t.Fatal("CHROMIUM is not set: run `make test`, or `go run ./hack/test -- <packages>` for a part")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.UserDataDir(t.TempDir()), chromedp.NoSandbox,
		chromedp.DisableGPU, chromedp.WindowSize(1000, 800), chromedp.Flag("disable-component-update", true))
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	ctx, end := chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(end)
	ctx, closeTab := chromedp.NewContext(ctx)
	t.Cleanup(closeTab)
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		t.Fatal(err)
	}
	complaints := chromedp.Console(ctx)
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		for m, err := range complaints {
			if err != nil {
				return // the tab is closed
			}
			if !strings.Contains(m.Text, "status of 4") { // refusals are told with a 4xx
				t.Errorf("the browser: %s %s", m.Text, m.URL)
			}
		}
	}()
	t.Cleanup(func() { _ = chromedp.Cancel(ctx); <-heard })
	return ctx
}

// picture keeps a picture of the page in the folder SCREENSHOTS, when it is set.
func picture(name string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		dir := os.Getenv("SCREENSHOTS")
		if dir == "" {
			return nil
		}
		png, err := chromedp.FullScreenshot(100)(ctx, tab)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, name+".png"), png, 0o600)
	})
}

func fill(field, text string) chromedp.Action[chromedp.Void] {
	return chromedp.SendKeys(chromedp.ID(field), text)
}

func click(selector string) chromedp.Action[chromedp.Void] {
	return chromedp.Click(chromedp.CSS(selector))
}

func submit() chromedp.Action[chromedp.Void] { return click("main button[type=submit]") }

// see waits until the page's heading is the text.
func see(heading string) chromedp.Action[chromedp.Void] {
	return chromedp.WaitVisible(chromedp.Search(`//h1[normalize-space()="` + heading + `"]`))
}

// read stores the text of the element.
func read(selector string, into *string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, tab *chromedp.Target) (err error) {
		*into, err = chromedp.Text(chromedp.CSS(selector))(ctx, tab)
		return err
	})
}

func location(into *string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, tab *chromedp.Target) (err error) {
		*into, err = chromedp.Location()(ctx, tab)
		return err
	})
}

func dark() chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}})
		return err
	})
}

func TestAStudentsWayInABrowser(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.north.Full.Post(t, "provision/student/", `{"email": "ana@institute.org", "first_name": "Ana", "courses": "ielts, toefl"}`).Want(t, 200)
	s.exec(t, `UPDATE enrolments SET state = 'suspended' WHERE course_id = (SELECT id FROM courses WHERE course_type = 'toefl')`)
	link, err := url.Parse(s.link)
	if err != nil {
		t.Fatal(err)
	}
	ctx := chromium(t)
	var fault, courses, where string
	err = chromedp.Do(ctx,
		chromedp.Navigate(s.url+link.Path), see("Set your password"), picture("set-password"),
		fill("password", password), fill("again", password+"x"), submit(),
		read(".fault", &fault), picture("set-password-refused"),
		fill("password", password), fill("again", password), submit(), see("Your password is set"), picture("password-set"),
		click("a.button"), see("Sign in"), picture("sign-in"),
		fill("name", "ana@institute.org"), fill("password", "wrong"), submit(), chromedp.WaitVisible(chromedp.CSS(".fault")), picture("sign-in-refused"),
		fill("password", password), submit(), see("My courses"), read("main", &courses), picture("my-courses"),
		chromedp.EmulateViewport(390, 800, chromedp.EmulateScale(2), chromedp.EmulateMobile), picture("my-courses-phone"),
		dark(), picture("my-courses-dark"),
		click(".bar a"), see("Choose your own password"), picture("change-password-dark"),
		chromedp.NavigateBack(), see("My courses"),
		click(".bar button"), see("Sign in"),
		chromedp.Navigate(s.url+"/my-courses/"), see("Sign in"), location(&where),
		chromedp.Navigate(s.url+link.Path), see("This link cannot be used any more"), picture("link-over"),
	)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(fault, "not the same") {
		t.Errorf("fault %q", fault)
	}
	for _, want := range []string{"Institute north", "IELTS Academic", "Access until 21 February 2027", "Paused"} {
		if !strings.Contains(courses, want) {
			t.Errorf("the page lacks %q:\n%s", want, courses)
		}
	}
	if !strings.HasSuffix(where, "/sign-in/?next=%2Fmy-courses%2F") {
		t.Errorf("signed out, the browser is at %s", where)
	}
}
