package console_test

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/browsertest"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

// picture is a PNG file.
func picture(t *testing.T, width, height int) []byte {
	t.Helper()
	p := image.NewRGBA(image.Rect(0, 0, width, height))
	for i := range min(width, height) {
		p.Set(i, i, color.RGBA{200, 30, 60, 255})
	}
	var file bytes.Buffer
	check.NoError(check.Now(t), png.Encode(&file, p), "the picture")
	return file.Bytes()
}

// Owners and admins change the name and the logo of their organization, and of no other.
func TestSettings(t *testing.T) {
	t.Parallel()
	s := open(t)
	b := s.signedIn(t, "adam")
	const page = "/console/north/settings/"
	status, text, _ := b.post(t, page, url.Values{"name": {"  The <North> "}})
	want(t, "the name", status, text, http.StatusSeeOther)
	_, text, _ = b.get(t, page)
	want(t, "the settings", http.StatusOK, text, http.StatusOK, "The name is changed.", "The &lt;North&gt;</span>", `name="access_months" type="number" required min="1" max="120" value="3"`)
	check.Equal(t, "what was done", s.did(t, "adam")[0], "changed organization The <North>", "")
	status, text, _ = b.post(t, page, url.Values{"name": {" "}})
	want(t, "no name", status, text, http.StatusBadRequest, "send a name of 1 to 200 characters", `role="alert"`)
	check.Equal(t, "entries", len(s.did(t, "adam")), 1, "")

	status, text, _ = b.post(t, page+"language", url.Values{"language": {"hi"}})
	want(t, "the language", status, text, http.StatusSeeOther)
	_, text, _ = b.get(t, page)
	want(t, "the settings", http.StatusOK, text, http.StatusOK, "The language is changed.", `<option value="hi" selected>हिन्दी</option>`)
	status, text, _ = b.post(t, page+"language", url.Values{"language": {"tlh"}})
	want(t, "an unknown language", status, text, http.StatusBadRequest, "send one of en, ar, hi", `role="alert"`)

	defaults := url.Values{"access_months": {" 12 "}, "grace_period_days": {"0"}, "starter_tests_per_course": {"5"}, "set_password_link_valid_days": {"14"}}
	status, text, _ = b.post(t, page+"defaults", defaults)
	want(t, "the defaults", status, text, http.StatusSeeOther)
	made := s.north.Full.Get(t, "organization/").Object(t)["provisioning_defaults"]
	check.Equal(t, "the defaults", fmt.Sprint(made), "map[default_access_months:12 grace_period_days:0 send_welcome_email_default:false set_password_link_valid_days:14 "+
		"starter_tests_per_course:5 visible_tests_limit:10]", "")
	check.Equal(t, "what was done", s.did(t, "adam")[0], "changed organization The <North>", "")
	defaults.Set("access_months", "a year")
	status, text, _ = b.post(t, page+"defaults", defaults)
	want(t, "a wrong default", status, text, http.StatusBadRequest, "send a whole number from 1 to 120", `role="alert"`)

	send := func(file []byte) (int, string) {
		t.Helper()
		status, text, _ := b.sendFile(t, page+"logo", nil, "logo", "logo.png", string(file))
		return status, text
	}
	for what, c := range map[string]struct {
		file []byte
		says string
	}{
		"no picture":    {[]byte(`<svg xmlns="http://www.w3.org/2000/svg"><script>1</script></svg>`), "PNG or JPEG"},
		"too wide":      {picture(t, 1025, 1), "1024 by 1024"},
		"half of one":   {picture(t, 64, 64)[:20], "PNG or JPEG"},
		"too large":     {bytes.Repeat([]byte("x"), 600<<10), "500 KiB"},
		"not all of it": {picture(t, 64, 64)[:90], "not a whole picture"},
	} {
		status, text := send(c.file)
		want(t, what, status, text, http.StatusBadRequest, c.says, `role="alert"`)
	}
	status, text = send(append(picture(t, 40, 30), "<script>behind it</script>"...))
	want(t, "a logo", status, text, http.StatusSeeOther)
	_, text, _ = b.get(t, page)
	path := regexp.MustCompile(`/logos/1/[0-9a-f]{32}`).FindString(text)
	check.True(check.Now(t), "the page has the logo", path != "", "%s", text)
	status, file, header := s.browser(t).get(t, path)
	check.Equal(t, "status", status, http.StatusOK, "for anybody")
	check.Equal(t, "type", header.Get("Content-Type"), "image/png", "")
	check.Lacks(t, "the picture", file, "behind it", "what the file had beside it")
	for _, other := range []string{strings.Replace(path, "/1/", "/2/", 1), path[:len(path)-2] + "zz", path[:len(path)-2]} {
		status, _, _ = s.browser(t).get(t, other)
		check.Equal(t, "status", status, http.StatusNotFound, "%s", other)
	}
	c := browsertest.Open(t)
	s.enter(c, "olive")
	for _, width := range []int64{1280, 390} {
		c.Size(width, 900)
		c.Visit(s.URL() + page)
		c.Accessible("settings")
		c.Screenshot(fmt.Sprintf("settings-%d", width))
		check.Equal(t, "pictures that show", c.Value(`String([...document.images].filter(i => i.naturalWidth > 0).length)`), "2", "")
	}
	status, _, _ = b.post(t, page+"remove-logo", nil)
	check.Equal(t, "status", status, http.StatusSeeOther, "removing it")
	status, _, _ = s.browser(t).get(t, path)
	check.Equal(t, "status", status, http.StatusNotFound, "afterwards")
}

// What a Kubernetes resource keeps of an organization is shown, and read-only.
func TestSettingsKeptElsewhereAreReadOnly(t *testing.T) {
	t.Parallel()
	s := open(t)
	by := audit.Actor{Kind: audit.Operator, Name: "kubernetes/demo/north"}
	_, _, err := org.Manage(t.Context(), s.DB, by, "north", org.Patch{}, org.Management{By: by.Name, Fields: []string{"name"}}, s.Now())
	check.NoError(check.Now(t), err, "a resource")
	b := s.signedIn(t, "olive")
	const page = "/console/north/settings/"
	status, text, _ := b.get(t, page)
	want(t, "the page", status, text, http.StatusOK, "These are kept by <code>kubernetes/demo/north</code>: name. Change them there.")
	status, text, _ = b.post(t, page, url.Values{"name": {"Mine"}})
	want(t, "the name", status, text, http.StatusConflict, "kubernetes/demo/north")
	if _, err := s.DB.Exec(t.Context(), `UPDATE members SET managed = true WHERE role = 'admin'`); err != nil {
		t.Fatal(err)
	}
	status, text, _ = b.get(t, "/console/north/staff/")
	want(t, "the staff", status, text, http.StatusOK, "kept by a Kubernetes resource")
}
