package docsite

import (
	"fmt"
	"html"
	"path"
	"regexp"
	"strings"

	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/lexers"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	goldmarkhtml "github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/util"
)

// repository is where links lead that leave docs.
const repository = "https://github.com/registrar-dev/registrar/blob/main/"

// markdown parses pages and renders them. Pages are the project's own: the HTML in them is kept.
var markdown = goldmark.New(
	goldmark.WithExtensions(extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute))), // a style would break the policy
	goldmark.WithParserOptions(parser.WithAutoHeadingID()),
	goldmark.WithRendererOptions(goldmarkhtml.WithUnsafe(), renderer.WithNodeRenderers(util.Prioritized(blocks{}, 1))),
)

// anchors gives headings the anchors that they have on GitHub.
type anchors map[string]int

var notInAnchor = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)

// Generate implements parser.IDs.
func (a anchors) Generate(heading []byte, _ ast.NodeKind) []byte {
	anchor := notInAnchor.ReplaceAllString(strings.ToLower(strings.TrimSpace(string(heading))), "")
	anchor = strings.ReplaceAll(anchor, " ", "-")
	a[anchor]++
	if n := a[anchor]; n > 1 {
		anchor = fmt.Sprintf("%s-%d", anchor, n-1)
	}
	return []byte(anchor)
}

// Put implements parser.IDs.
func (anchors) Put([]byte) {}

// target is where a link of the page file leads on the site.
func target(file, link string) string {
	if strings.Contains(link, ":") || strings.HasPrefix(link, "#") {
		return link
	}
	name, fragment, _ := strings.Cut(link, "#")
	if fragment != "" {
		fragment = "#" + fragment
	}
	if at := path.Join("docs", path.Dir(file), name); !strings.HasPrefix(at, "docs/") {
		return repository + at + fragment
	}
	if base := path.Base(name); base == "README.md" {
		name = strings.TrimSuffix(name, base) + home
	}
	if base, ok := strings.CutSuffix(name, ".md"); ok {
		name = base + ".html"
	}
	return name + fragment
}

// retarget changes the links of a page, which lead from file to file, to those of the site.
func retarget(page ast.Node, file string) {
	_ = ast.Walk(page, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // the function has no errors
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Link:
			n.Destination = []byte(target(file, string(n.Destination)))
		case *ast.Image:
			n.Destination = []byte(target(file, string(n.Destination)))
		}
		return ast.WalkContinue, nil
	})
}

// keyless are addresses that a Registrar answers without a key.
var keyless = regexp.MustCompile(`^/api/v1/(docs|openapi\.(json|yaml)|events/schemas/([a-z_.]+/)?)$`)

// linkAddresses makes links of the keyless addresses that a page shows as code. registrar is where they are, from the page.
func linkAddresses(page ast.Node, source []byte, registrar string) {
	var found []*ast.CodeSpan
	_ = ast.Walk(page, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // the function has no errors
		if code, ok := n.(*ast.CodeSpan); ok && entering && n.Parent().Kind() != ast.KindLink && keyless.MatchString(plain(code, source)) {
			found = append(found, code)
		}
		return ast.WalkContinue, nil
	})
	for _, code := range found {
		link := ast.NewLink()
		link.Destination = []byte(registrar + plain(code, source))
		code.Parent().ReplaceChild(code.Parent(), code, link)
		link.AppendChild(link, code)
	}
}

// alternatives are programs that do the same, one of which is shown at a time.
type alternatives struct {
	ast.BaseBlock

	number int // on its page
}

// alternative is one of them. Its child is the block of code.
type alternative struct {
	ast.BaseBlock

	label string
}

var (
	kindAlternatives = ast.NewNodeKind("Alternatives")
	kindAlternative  = ast.NewNodeKind("Alternative")
)

func (*alternatives) Kind() ast.NodeKind             { return kindAlternatives }
func (n *alternatives) Dump(source []byte, deep int) { ast.DumpHelper(n, source, deep, nil, nil) }
func (*alternative) Kind() ast.NodeKind              { return kindAlternative }
func (n *alternative) Dump(source []byte, deep int)  { ast.DumpHelper(n, source, deep, nil, nil) }

// gather makes alternatives of blocks of code that follow each other, each below a line that is nothing but
// the name of its language: "Python:".
func gather(page ast.Node, source []byte) {
	number := 0
	for n := page.FirstChild(); n != nil; {
		var found []*alternative
		var taken []ast.Node
		for label, code := labelled(n, source); code != nil; label, code = labelled(code.NextSibling(), source) {
			found = append(found, &alternative{label: label})
			taken = append(taken, code.PreviousSibling(), code)
		}
		if len(found) < 2 {
			n = n.NextSibling()
			continue
		}
		number++
		all := &alternatives{number: number}
		next := taken[len(taken)-1].NextSibling()
		page.InsertBefore(page, taken[0], all)
		for i, one := range found {
			page.RemoveChild(page, taken[2*i])
			one.AppendChild(one, taken[2*i+1]) // which takes it from the page
			all.AppendChild(all, one)
		}
		n = next
	}
}

// labelled is the label of a paragraph and the code below it; nil when it is no such paragraph.
func labelled(n ast.Node, source []byte) (string, ast.Node) {
	paragraph, ok := n.(*ast.Paragraph)
	if !ok {
		return "", nil
	}
	code, ok := paragraph.NextSibling().(*ast.FencedCodeBlock)
	if !ok {
		return "", nil
	}
	label, ok := strings.CutSuffix(plain(paragraph, source), ":")
	if !ok || len(strings.Fields(label)) != 1 {
		return "", nil
	}
	return label, code
}

// plain is the text of a node without blocks of code, in which blanks stand for what separates words.
func plain(n ast.Node, source []byte) string {
	var text strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // the function has no errors
		switch n := n.(type) {
		case *ast.Text:
			if entering {
				text.Write(n.Segment.Value(source))
				if n.SoftLineBreak() || n.HardLineBreak() {
					text.WriteByte(' ')
				}
			}
		case *ast.FencedCodeBlock, *ast.HTMLBlock, *ast.RawHTML:
			return ast.WalkSkipChildren, nil
		default:
			if !entering && n.Type() == ast.TypeBlock {
				text.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil
	})
	return strings.Join(strings.Fields(html.UnescapeString(text.String())), " ")
}

// blocks renders what pages show in a way of their own.
type blocks struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (blocks) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindHeading, renderHeading)
	r.Register(ast.KindFencedCodeBlock, renderCode)
	r.Register(kindAlternatives, renderAlternatives)
	r.Register(kindAlternative, renderAlternative)
}

func renderHeading(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	n := node.(*ast.Heading)
	id, _ := n.AttributeString("id")
	if entering {
		fmt.Fprintf(w, "<h%d id=\"%s\">", n.Level, id)
		return ast.WalkContinue, nil
	}
	if n.Level > 1 {
		fmt.Fprintf(w, ` <a class="anchor" href="#%s" aria-label="Link to “%s”">#</a>`, id, html.EscapeString(plain(n, source)))
	}
	fmt.Fprintf(w, "</h%d>\n", n.Level)
	return ast.WalkContinue, nil
}

func renderCode(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	n := node.(*ast.FencedCodeBlock)
	code := string(n.Lines().Value(source))
	_, _ = w.WriteString(`<div class="code"><pre tabindex="0"><code>`) // it keeps its error
	writeHighlighted(w, string(n.Language(source)), code)
	_, _ = w.WriteString("</code></pre></div>\n")
	return ast.WalkSkipChildren, nil
}

func writeHighlighted(w util.BufWriter, language, code string) {
	lexer := lexers.GlobalLexerRegistry.Get(language)
	if language == "" || lexer == nil {
		_, _ = w.WriteString(html.EscapeString(code))
		return
	}
	tokens, err := chroma.Coalesce(lexer).Tokenise(nil, code)
	if err != nil {
		_, _ = w.WriteString(html.EscapeString(code))
		return
	}
	for t := tokens(); t != chroma.EOF; t = tokens() {
		text := html.EscapeString(t.Value)
		if class := classOf(t.Type); class != "" {
			text = `<span class="` + class + `">` + text + `</span>`
		}
		_, _ = w.WriteString(text)
	}
}

// classOf is the class by which the stylesheet colours a token; "" for most.
func classOf(t chroma.TokenType) string {
	switch {
	case t.InCategory(chroma.Comment):
		return "c"
	case t.InCategory(chroma.Keyword):
		return "k"
	case t.InSubCategory(chroma.LiteralString):
		return "s"
	case t.InSubCategory(chroma.LiteralNumber):
		return "m"
	case t == chroma.NameTag, t == chroma.NameAttribute, t == chroma.NameVariable, t == chroma.NameBuiltin, t == chroma.NameFunction, t == chroma.NameClass:
		return "n"
	default:
		return ""
	}
}

// Radio buttons switch between alternatives without a script.
func renderAlternatives(w util.BufWriter, _ []byte, _ ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		_, _ = w.WriteString("<fieldset class=\"tabs\"><legend class=\"hidden\">Language</legend>\n")
	} else {
		_, _ = w.WriteString("</fieldset>\n")
	}
	return ast.WalkContinue, nil
}

func renderAlternative(w util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		_, _ = w.WriteString("</div>\n")
		return ast.WalkContinue, nil
	}
	n := node.(*alternative)
	all := n.Parent().(*alternatives)
	label := html.EscapeString(n.label)
	id := fmt.Sprintf("tab-%d-%s", all.number, strings.ToLower(label))
	checked := ""
	if n.PreviousSibling() == nil {
		checked = " checked"
	}
	fmt.Fprintf(w, `<input type="radio" name="tabs-%d" id="%s" value="%s"%s><label for="%s">%s</label><div class="panel">`+"\n",
		all.number, id, label, checked, id, label)
	return ast.WalkContinue, nil
}
