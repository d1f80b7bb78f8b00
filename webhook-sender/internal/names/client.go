package names

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/registrar-dev/registrar/internal/domain/lms"
	"github.com/registrar-dev/registrar/webhook-sender/internal/advantage"
)

const (
	mediaType   = "application/vnd.ims.lti-nrps.v2.membershipcontainer+json"
	largestPage = 4 << 20  // bytes
	largestAll  = 32 << 20 // bytes of all pages
	maxPages    = 500
	maxMembers  = 50_000
)

// read gives all members of a course, or none: a list that breaks off would look as if people had left. long is called when the list
// turns out to be a long one. Its error is that of long, a *advantage.Trouble, or of our own.
func (p *Puller) read(ctx context.Context, pull lms.Pull, long func() error) (members []lms.Member, err error) {
	address, seen, size := pull.MembershipsURL, map[string]bool{}, 0
	first, err := url.Parse(address)
	if err != nil {
		return nil, advantage.Because(0, "The LMS gave no address of the course’s members that can be used.")
	}
	for address != "" {
		switch {
		case seen[address]:
			return nil, advantage.Because(0, "The LMS’s list of members leads back to a page of it that was read before.")
		case len(seen) == maxPages:
			return nil, advantage.Because(0, "The LMS’s list of members has more than %d pages.", maxPages)
		}
		seen[address] = true
		answer, err := p.page(ctx, pull, address)
		if err != nil {
			return nil, err
		}
		some, wrong := lms.ReadMembers(answer.Body, pull.Course)
		if wrong != nil {
			return nil, advantage.Because(answer.Status, "The LMS’s list of members cannot be used: %v.", wrong)
		}
		if members, size = append(members, some...), size+len(answer.Body); len(members) > maxMembers || size > largestAll {
			return nil, advantage.Because(answer.Status, "The LMS’s list of members is too long: at most 50,000 people, and 32 MiB, are read.")
		}
		if size > ordinary {
			if err := long(); err != nil {
				return nil, err
			}
		}
		next, err := nextPage(answer.Header, address)
		if err != nil {
			return nil, err
		}
		if next != nil && (next.Scheme != first.Scheme || !strings.EqualFold(next.Host, first.Host)) {
			return nil, advantage.Because(answer.Status, "The LMS’s list of members goes on at another host, which is not called.")
		}
		if address = ""; next != nil {
			address = next.String()
		}
	}
	return members, nil
}

func (p *Puller) page(ctx context.Context, pull lms.Pull, address string) (a advantage.Answer, err error) {
	token, err := p.client.Token(ctx, pull.Services, lms.NamesScope)
	if err != nil {
		return a, err
	}
	a, err = p.client.Call(ctx, advantage.Request{Method: http.MethodGet, Address: address, Accept: mediaType, Token: token, Largest: largestPage + 1})
	switch {
	case err != nil:
		return a, err
	case a.Status == http.StatusUnauthorized:
		p.client.Forget(pull.Services, lms.NamesScope)
		return a, advantage.Because(a.Status, "The LMS did not accept its own token. Check that the tool may still use Names and Role Provisioning Services there.")
	case a.Status == http.StatusForbidden:
		return a, advantage.Because(a.Status, "The LMS does not let the tool read who is in the course. Allow Names and Role Provisioning Services for it there.")
	case a.Status == http.StatusNotFound:
		return a, advantage.Because(a.Status, "The LMS has no such course any more, or the tool is not in it. Open a link in the course once, or turn its roster off here.")
	case a.Status != http.StatusOK:
		return a, advantage.Because(a.Status, "The LMS answered %d%s.", a.Status, advantage.Quoted(a.Body))
	case len(a.Body) > largestPage:
		return a, advantage.Because(a.Status, "The LMS’s list of members has a page of more than 4 MiB.")
	}
	return a, nil
}

// nextPage is where the list goes on (RFC 8288); nil: there it ends.
func nextPage(h http.Header, at string) (*url.URL, error) {
	for _, value := range h.Values("Link") {
		for value != "" {
			_, rest, found := strings.Cut(value, "<")
			if !found {
				break
			}
			target, rest, found := strings.Cut(rest, ">")
			if !found {
				break
			}
			parameters := rest
			if i := strings.Index(rest, "<"); i >= 0 { // the next link of the header
				parameters, value = rest[:i], rest[i:]
			} else {
				value = ""
			}
			if !isNext(parameters) {
				continue
			}
			base, err := url.Parse(at)
			if err != nil {
				return nil, err
			}
			to, err := base.Parse(target)
			if err != nil {
				return nil, advantage.Because(0, "The LMS’s list of members goes on at an address that cannot be used.")
			}
			return to, nil
		}
	}
	return nil, nil //nolint:nilnil // there is no further page
}

// isNext says whether a link's parameters have the relation next, perhaps among others.
func isNext(parameters string) bool {
	for p := range strings.SplitSeq(parameters, ";") {
		name, value, _ := strings.Cut(p, "=")
		if !strings.EqualFold(strings.TrimSpace(name), "rel") {
			continue
		}
		for relation := range strings.FieldsSeq(strings.Trim(strings.TrimSpace(strings.TrimRight(strings.TrimSpace(value), ",")), `"`)) {
			if strings.EqualFold(relation, "next") {
				return true
			}
		}
	}
	return false
}
