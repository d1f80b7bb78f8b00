package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/registrar-dev/registrar/hack/stack"
)

// neighbours are two organizations that have the same people. The first makes the accounts and keeps
// every secret that it is given; the second takes the people in and mails them. Whatever happens
// meanwhile, two things hold (docs/security.md): no call of the first ends a mailed link or a password
// that the student chose over one, and nothing that the first was given shows what is the second's.
type neighbours struct {
	first, second *partner
	people        []*shared
}

// shared is a person of both, with what the first organization knows and what the student chose.
type shared struct {
	email            string
	passwords, links []string // the first organization's
	chosen           string   // over a mailed link; "" for none
}

const (
	mostShared = 25 // people: each signs in several times in the end, and pages limit that
	mostKept   = 2  // secrets of a kind
	ownChoice  = "the student's choice 5"
)

func newNeighbours(l *load) *neighbours {
	c, m := l.caller(3000), newModel()
	return &neighbours{first: &partner{load: l, call: c, number: 3000, org: schools[0], model: m, at: map[string]string{}},
		second: &partner{load: l, call: c, number: 3001, org: schools[1], model: m, at: map[string]string{}}}
}

func (n *neighbours) step(ctx context.Context) error {
	r := n.first.call.rand
	if len(n.people) == 0 || len(n.people) < mostShared && r.IntN(5) == 0 {
		p := &shared{email: fmt.Sprintf("both%d@neighbours.org", len(n.people))}
		if err := n.callFirst(ctx, p); err != nil {
			return err
		}
		n.people = append(n.people, p)
		return n.callSecond(ctx, p)
	}
	at := r.IntN(len(n.people))
	p := n.people[at]
	switch r.IntN(6) {
	case 0:
		return n.callSecond(ctx, p)
	case 1:
		return n.first.score(ctx, p.email, n.first.model.students[n.first.org+" "+p.email])
	case 2:
		return n.second.score(ctx, p.email, n.second.model.students[n.second.org+" "+p.email])
	case 3:
		if links := n.mailed(p); at%2 == 0 && p.chosen == "" && len(links) > 0 {
			return n.choose(ctx, p, links[0])
		}
	}
	return n.callFirst(ctx, p)
}

// callFirst is a call of the first organization, with a password of its own or for a link.
func (n *neighbours) callFirst(ctx context.Context, p *shared) error {
	o := op{Kind: "provision", Org: n.first.org, Email: p.email, Courses: []string{"ielts"}, Months: 3, Quiet: true}
	if n.first.chance(0.5) {
		o.password = fmt.Sprintf("given by the first %d", n.first.call.rand.IntN(mostKept))
	}
	link, err := n.first.provision(ctx, o)
	if o.password != "" && !slices.Contains(p.passwords, o.password) {
		p.passwords = append(p.passwords, o.password)
	}
	if _, token, ok := strings.Cut(link, "/set-password/"); ok && len(p.links) < mostKept {
		p.links = append(p.links, token)
	}
	return err
}

func (n *neighbours) callSecond(ctx context.Context, p *shared) error {
	_, err := n.second.provision(ctx, op{Kind: "provision", Org: n.second.org, Email: p.email, Courses: []string{"toefl"}, Months: 3})
	return err
}

var mailedLink = regexp.MustCompile(`/set-password/([\w-]+)`)

// mailed are the links that arrived in the student's mailbox.
func (n *neighbours) mailed(p *shared) (tokens []string) {
	for _, mail := range n.first.site.mail.Matching(func(m stack.Mail) bool { return slices.Contains(m.To, p.email) }) {
		for _, found := range mailedLink.FindAllStringSubmatch(strings.ReplaceAll(string(mail.Data), "=\r\n", ""), -1) {
			if !slices.Contains(tokens, found[1]) {
				tokens = append(tokens, found[1])
			}
		}
	}
	return tokens
}

// choose sets the student's own password. A link that a try used up whose answer was lost is over.
func (n *neighbours) choose(ctx context.Context, p *shared, token string) error {
	v, err := n.visitor()
	if err != nil {
		return err
	}
	status, body, err := v.set(ctx, token, ownChoice)
	if err != nil || status != http.StatusOK && status != http.StatusGone {
		return errors.Join(err, fmt.Errorf("choosing a password for %s: %d %s", p.email, status, body))
	}
	p.chosen = ownChoice
	n.first.report.accepted("password over a mailed link")
	return nil
}

// visitor is a browser.
type visitor struct {
	site   *site
	client http.Client
}

func (n *neighbours) visitor() (*visitor, error) {
	jar, err := cookiejar.New(nil)
	return &visitor{n.first.site, http.Client{Jar: jar, Timeout: answersWithin}}, err
}

// open loads a page, or posts a form to it, again until there is an answer.
func (v *visitor) open(ctx context.Context, path string, form url.Values) (status int, body string, err error) {
	for began := time.Now(); time.Since(began) < patience; {
		status, body, err = v.try(ctx, path, form)
		if err == nil && status < 500 && status != http.StatusTooManyRequests {
			return status, body, nil
		}
		if err := pause(ctx, time.Second); err != nil {
			return status, body, err
		}
	}
	return status, body, errors.Join(err, fmt.Errorf("%s: no good answer in %s: %d", path, patience, status))
}

func (v *visitor) try(ctx context.Context, path string, form url.Values) (int, string, error) {
	method, text := http.MethodGet, ""
	if form != nil {
		method, text = http.MethodPost, form.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, v.site.servers[0].PublicURL()+path, strings.NewReader(text))
	if err != nil {
		return 0, "", err
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	res, err := v.client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	return res.StatusCode, string(body), err
}

func (v *visitor) set(ctx context.Context, token, password string) (int, string, error) {
	return v.open(ctx, "/set-password/"+token, url.Values{"password": {password}, "again": {password}})
}

// seesResult says whether the browser opens the result of a test session, and not the sign-in page.
func (v *visitor) seesResult(ctx context.Context, session string) (sees bool, status int, err error) {
	status, body, err := v.open(ctx, "/results/test:"+session, nil)
	return status == http.StatusOK && !strings.Contains(body, `name="password"`), status, err
}

// neighbours checks both rules on the pages, with every secret that the first organization was given
// and every link that was mailed.
func (c *checker) neighbours(ctx context.Context, n *neighbours) error {
	var secrets, opened, links int
	for _, p := range n.people {
		mailed := n.mailed(p)
		links += len(mailed)
		if err := c.stillOpen(ctx, n, p, mailed, "the first organization's calls"); err != nil {
			return err
		}
		tried, opening, err := c.abuse(ctx, n, p)
		if err != nil {
			return err
		}
		secrets, opened = secrets+tried, opened+opening
		if err := c.stillOpen(ctx, n, p, mailed, "the use of what the first organization knows"); err != nil {
			return err
		}
		if p.chosen == "" && len(mailed) > 0 {
			if err := n.choose(ctx, p, mailed[0]); err != nil {
				return err
			}
		}
		if p.chosen != "" {
			err = c.shows(ctx, n, p)
		}
		if err != nil {
			return err
		}
	}
	c.report.checked("people of two organizations", len(n.people))
	c.report.checked("of them with a password of their own over a mailed link", len(slices.DeleteFunc(slices.Clone(n.people), func(p *shared) bool { return p.chosen == "" })))
	c.report.checked("secrets of the one tried on pages of the other", secrets)
	c.report.checked("of them that signed somebody in, to the one's own courses alone", opened)
	if secrets > 0 && opened == 0 {
		c.report.find("none of the %d secrets that an organization was given signs anybody in: nothing was tried", secrets)
	}
	c.report.checked("links that were mailed to them", links)
	return nil
}

// stillOpen holds that the mailed links open, unless the student has used one.
func (c *checker) stillOpen(ctx context.Context, n *neighbours, p *shared, mailed []string, after string) error {
	for _, token := range mailed {
		v, err := n.visitor()
		if err != nil {
			return err
		}
		status, _, err := v.open(ctx, "/set-password/"+token, nil)
		if err != nil {
			return err
		}
		if p.chosen == "" && status != http.StatusOK {
			c.report.find("a link that was mailed to %s is answered %d after %s", p.email, status, after)
		}
	}
	return nil
}

// abuse uses every secret that the first organization knows as if it were the student. It counts them, and
// those that sign in.
func (c *checker) abuse(ctx context.Context, n *neighbours, p *shared) (tried, opened int, err error) {
	count := func(signedIn bool) {
		if tried++; signedIn {
			opened++
		}
	}
	known := slices.Clone(p.passwords)
	for i, token := range p.links {
		v, err := n.visitor()
		if err != nil {
			return tried, opened, err
		}
		text := fmt.Sprintf("chosen by the first %d", i)
		status, body, err := v.set(ctx, token, text)
		if err != nil {
			return tried, opened, err
		}
		signedIn, err := c.private(ctx, n, p, v, "the session after a link of an answer")
		if err != nil {
			return tried, opened, err
		}
		if status == http.StatusOK {
			known = append(known, text)
		} else if status != http.StatusGone {
			c.report.find("the link in an answer about %s is answered %d: %s", p.email, status, body)
		}
		count(signedIn)
	}
	for _, text := range known {
		v, err := n.signIn(ctx, p, text)
		if err != nil {
			return tried, opened, err
		}
		signedIn, err := c.private(ctx, n, p, v, "a password that the first organization knows")
		if err != nil {
			return tried, opened, err
		}
		count(signedIn)
	}
	return tried, opened, nil
}

// signIn is a browser after an attempt to sign in.
func (n *neighbours) signIn(ctx context.Context, p *shared, password string) (*visitor, error) {
	v, err := n.visitor()
	if err == nil {
		_, _, err = v.open(ctx, "/sign-in/", url.Values{"name": {p.email}, "password": {password}})
	}
	return v, err
}

// shows holds that the student's own password opens what both organizations have.
func (c *checker) shows(ctx context.Context, n *neighbours, p *shared) error {
	v, err := n.signIn(ctx, p, p.chosen)
	if err != nil {
		return err
	}
	_, body, err := v.open(ctx, "/my-courses/", nil)
	if err != nil {
		return err
	}
	for _, text := range []string{"IELTS", "TOEFL"} {
		if !strings.Contains(body, text) {
			c.report.find("the password that %s chose over a mailed link does not show %s: %s", p.email, text, body)
		}
	}
	for session := range n.second.model.students[n.second.org+" "+p.email].sessions {
		sees, status, err := v.seesResult(ctx, session)
		if err != nil {
			return err
		}
		if !sees {
			c.report.find("the password that %s chose over a mailed link does not show a result: %d", p.email, status)
		}
	}
	return nil
}

// private holds that a browser shows no course, result or name of the second organization, and says whether
// it is signed in, which the first one's course on the page shows.
func (c *checker) private(ctx context.Context, n *neighbours, p *shared, v *visitor, with string) (signedIn bool, err error) {
	_, body, err := v.open(ctx, "/my-courses/", nil)
	if err != nil {
		return false, err
	}
	if strings.Contains(body, "TOEFL") || strings.Contains(body, n.second.org) {
		c.report.find("%s shows what %s has at %s: %s", with, p.email, n.second.org, body)
	}
	for session := range n.second.model.students[n.second.org+" "+p.email].sessions {
		sees, _, err := v.seesResult(ctx, session)
		if err != nil {
			return false, err
		}
		if sees {
			c.report.find("%s opens the result %s that %s has at %s", with, session, p.email, n.second.org)
		}
	}
	return strings.Contains(body, "IELTS") && !strings.Contains(body, `name="password"`), nil
}
