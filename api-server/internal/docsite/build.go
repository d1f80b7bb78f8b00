package docsite

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// The page of a folder is its README.md; that of docs lists all pages, and the list beside each page is made of it.
const (
	home = "index.html"
	list = "README.md"
)

// static holds the frame of a page, its stylesheet and its script, and MiniSearch, which searches: hack/update-embedded
// takes it from npm. Its licence is beside it.
//
//go:embed static search/minisearch.js
var static embed.FS

var frame = template.Must(template.ParseFS(static, "static/page.html"))

// entry is a link to a page, from the site's base.
type entry struct{ Path, Title string }

// group is a part of the list of pages.
type group struct {
	Title   string
	Entries []entry
}

// section is what stands below a heading: what a search finds.
type section struct {
	Page    string `json:"page"`
	Title   string `json:"title"`
	Anchor  string `json:"anchor"`
	Heading string `json:"heading"`
	Text    string `json:"text"`
}

// page is one Markdown file.
type page struct {
	Path     string // from the site's base
	Title    string
	Body     template.HTML
	Contents []section // of the second level
	sections []section
}

// build makes the site of the files: content by path. reference is where the API reference is, from the site's base, and
// registrar where a Registrar is; "" where there is none.
func build(files fs.FS, reference, registrar string) (map[string][]byte, error) {
	site := map[string][]byte{}
	pages := map[string]page{}
	var groups []group
	err := fs.WalkDir(files, ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(files, file)
		if err != nil {
			return err
		}
		if path.Ext(file) != ".md" {
			site[file] = content
			return nil
		}
		p, tree, err := render(file, content, registrar)
		if file == list {
			groups = listed(tree, content)
		}
		pages[p.Path] = p
		return err
	})
	if err != nil {
		return nil, err
	}
	shared, err := addAssets(site, pages)
	if err != nil {
		return nil, err
	}
	shared.Groups, shared.Reference = groups, reference
	for _, p := range pages {
		var out bytes.Buffer
		if err := frame.Execute(&out, shared.around(p)); err != nil {
			return nil, fmt.Errorf("%s: %w", p.Path, err)
		}
		site[p.Path] = out.Bytes()
	}
	return site, nil
}

// render makes a page of a file. registrar is build's.
func render(file string, source []byte, registrar string) (page, ast.Node, error) {
	tree := markdown.Parser().Parse(text.NewReader(source), parser.WithContext(parser.NewContext(parser.WithIDs(anchors{}))))
	retarget(tree, file)
	p := page{Path: target(list, file), Title: file, sections: sections(tree, source)}
	for i, s := range p.sections {
		if i == 0 {
			p.Title = s.Heading
		}
		p.sections[i].Page, p.sections[i].Title = p.Path, p.Title
	}
	for n := tree.FirstChild(); n != nil; n = n.NextSibling() {
		if h, ok := n.(*ast.Heading); ok && h.Level == 2 {
			id, _ := h.AttributeString("id")
			p.Contents = append(p.Contents, section{Anchor: fmt.Sprintf("%s", id), Heading: plain(h, source)})
		}
	}
	gather(tree, source)
	if registrar != "" {
		linkAddresses(tree, source, strings.Repeat("../", strings.Count(file, "/"))+registrar)
	}
	var body bytes.Buffer
	if err := markdown.Renderer().Render(&body, source, tree); err != nil {
		return page{}, nil, fmt.Errorf("%s: %w", file, err)
	}
	p.Body = template.HTML(emptyHeading.ReplaceAllString(tables.Replace(body.String()), "<td></td>")) //nolint:gosec // the project's own pages
	return p, tree, nil
}

// Tables scroll by themselves where they are wider than the page, and have no headings without text.
var (
	tables       = strings.NewReplacer("<table>", `<div class="scroll" tabindex="0" role="group" aria-label="Table"><table>`, "</table>", "</table></div>")
	emptyHeading = regexp.MustCompile(`<th[^>]*></th>`)
)

// sections are the parts of a page, each below a heading.
func sections(tree ast.Node, source []byte) []section {
	var all []section
	for n := tree.FirstChild(); n != nil; n = n.NextSibling() {
		words := plain(n, source)
		if h, ok := n.(*ast.Heading); ok {
			id, _ := h.AttributeString("id")
			all = append(all, section{Anchor: fmt.Sprintf("%s", id), Heading: words})
		} else if len(all) > 0 && words != "" {
			last := &all[len(all)-1]
			last.Text = strings.TrimSpace(last.Text + " " + words)
		}
	}
	return all
}

// listed are the groups of pages that the lists of a page link to, each below its heading.
func listed(tree ast.Node, source []byte) []group {
	var groups []group
	_ = ast.Walk(tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // the function has no errors
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			if n.Level == 2 {
				groups = append(groups, group{Title: plain(n, source)})
			}
		case *ast.Link:
			address := string(n.Destination)
			if _, ok := n.Parent().Parent().(*ast.ListItem); ok && n.PreviousSibling() == nil && len(groups) > 0 && !strings.Contains(address, ":") {
				last := &groups[len(groups)-1]
				last.Entries = append(last.Entries, entry{address, plain(n, source)})
			}
		}
		return ast.WalkContinue, nil
	})
	return groups
}

// shared is what the frames of all pages have.
type shared struct {
	Groups                       []group
	Reference                    string
	Style, Script, Engine, Index string
}

// framed is what the frame of a page shows.
type framed struct {
	shared
	page

	Root           string // from the page to the site's base
	Before, Behind *entry
}

func (s shared) around(p page) framed {
	f := framed{shared: s, page: p, Root: strings.Repeat("../", strings.Count(p.Path, "/"))}
	var all []entry
	for _, g := range s.Groups {
		all = append(all, g.Entries...)
	}
	at := slices.IndexFunc(all, func(e entry) bool { return e.Path == p.Path })
	if at > 0 {
		f.Before = &all[at-1]
	}
	if at+1 < len(all) && (at >= 0 || p.Path == home) {
		f.Behind = &all[at+1]
	}
	return f
}

// Has says whether the page is one of a group's.
func (f framed) Has(g group) bool {
	return slices.ContainsFunc(g.Entries, func(e entry) bool { return e.Path == f.Path })
}

// addAssets adds what pages load. Addresses of assets name their content.
func addAssets(site map[string][]byte, pages map[string]page) (shared, error) {
	all := []section{}
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		all = append(all, pages[name].sections...)
	}
	index, err := json.Marshal(all)
	if err != nil {
		return shared{}, err
	}
	add := func(name string, content []byte) string {
		site["assets/"+name] = content
		return "assets/" + name + "?" + version + "=" + digest(content)
	}
	s := shared{Index: add("index.js", slices.Concat([]byte("globalThis.sections = "), index, []byte(";\n")))}
	for file, address := range map[string]*string{"static/docs.css": &s.Style, "static/docs.js": &s.Script, "search/minisearch.js": &s.Engine} {
		content, err := static.ReadFile(file)
		if err != nil {
			return shared{}, err
		}
		*address = add(path.Base(file), content)
	}
	return s, nil
}
