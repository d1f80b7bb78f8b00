package rest_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

// Reference: conventions#tags.
func TestWhatHasNotChangedIsNotSentAgain(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north := e.Organization(t, "north")
	for _, path := range []string{"catalog/", "courses/", "organization/"} {
		tag := north.ReadOnly.Get(t, path).Want(t, http.StatusOK).Header.Get("ETag")
		check.True(check.Now(t), "there is a tag", strings.HasPrefix(tag, `W/"`), "%s: %q", path, tag)
		same := north.ReadOnly.With("If-None-Match", `"other", `+tag).Get(t, path).Want(t, http.StatusNotModified)
		check.Equal(t, "the body", string(same.Body), "", "%s", path)
		north.ReadOnly.With("If-None-Match", `"other"`).Get(t, path).Want(t, http.StatusOK)
	}
	old := north.ReadOnly.Get(t, "catalog/").Header.Get("ETag")
	e.Platform.Put(t, "organizations/north/catalog/quizzes/q1", `{"title": "Reading, week 1"}`).Want(t, http.StatusCreated)
	changed := north.ReadOnly.With("If-None-Match", old).Get(t, "catalog/").Want(t, http.StatusOK)
	check.Contains(t, "the catalog", string(changed.Body), "Reading, week 1", "")
}

// Reference: conventions#pages.
func TestPagesLinkToTheNext(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north := e.Organization(t, "north")
	for i := range 3 {
		north.Full.Post(t, provisionPath, fmt.Sprintf(`{"email": "s%d@north-institute.org", "first_name": "Asha"}`, i)).Want(t, http.StatusCreated)
	}
	next := regexp.MustCompile(`^</api/v1/(.*)>; rel="next"$`)
	path, seen := "students/?limit=1&tz=Asia%2FKolkata", map[string]bool{}
	for path != "" {
		a := north.ReadOnly.Get(t, path).Want(t, http.StatusOK)
		var page struct {
			HasMore  bool `json:"has_more"`
			Students []struct {
				Email    string
				JoinedAt string `json:"joined_at"`
			}
		}
		a.Into(t, &page)
		seen[page.Students[0].Email] = true
		check.Contains(t, "joined_at", page.Students[0].JoinedAt, "+05:30", "%s", path)
		link := next.FindStringSubmatch(a.Header.Get("Link"))
		check.Equal(check.Now(t), "whether there is a link", link != nil, page.HasMore, "%q", a.Header.Get("Link"))
		path = ""
		if link != nil {
			path = link[1]
		}
	}
	check.Equal(t, "number of students", len(seen), 3, "%v", seen)
}

// Reference: conventions#packed-answers.
func TestReadsArePackedForWhoTakesThemSo(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	e.Organization(t, "north")
	key := e.Key(t, "north", org.Full)
	send := func(method, path, encoding, body string) (packed string, text []byte) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, e.URL()+"/api/v1/"+path, strings.NewReader(body))
		check.NoError(check.Now(t), err, "%s", path)
		r.Header.Set("X-API-Key", key)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept-Encoding", encoding)
		res, err := http.DefaultClient.Do(r)
		check.NoError(check.Now(t), err, "%s", path)
		defer func() { _ = res.Body.Close() }()
		text, err = io.ReadAll(res.Body)
		check.NoError(check.Now(t), err, "%s", path)
		check.Equal(check.Now(t), "whether it was accepted", res.StatusCode < 300, true, "%s", text)
		return res.Header.Get("Content-Encoding"), text
	}
	packed, plain := send(http.MethodGet, "courses/", "identity", "")
	check.Equal(t, "Content-Encoding", packed, "", "")
	for encoding, open := range map[string]func(io.Reader) (io.Reader, error){
		"gzip": func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) },
		"zstd": func(r io.Reader) (io.Reader, error) { return zstd.NewReader(r) },
	} {
		packed, body := send(http.MethodGet, "courses/", encoding, "")
		check.Equal(check.Now(t), "Content-Encoding", packed, encoding, "")
		check.True(t, "it is shorter", len(body) < len(plain)/2, "%d bytes of %d", len(body), len(plain))
		r, err := open(bytes.NewReader(body))
		check.NoError(check.Now(t), err, "%s", encoding)
		text, err := io.ReadAll(r)
		check.NoError(t, err, "%s", encoding)
		check.Equal(t, "the content", string(text), string(plain), "%s", encoding)
	}
	// An answer with a secret and what the caller sent is not.
	packed, body := send(http.MethodPost, provisionPath, "gzip", `{"email": "asha@north-institute.org", "first_name": "`+strings.Repeat("Asha", 30)+
		`", "password_mode": "generate", "courses": ["ielts", "toefl", "sat"]}`)
	check.Equal(t, "Content-Encoding", packed, "", "")
	check.True(t, "the answer is long enough to be packed", len(body) > 1<<10, "%d bytes", len(body))
}
