package console

import "html/template"

// icons are drawn on 24 by 24 in lines, with the colour of the text beside them.
var icons = map[string]string{
	"mark":     `<path d="M5 13l5 5 9-12"/>`,
	"overview": `<path d="M4 4h7v7H4zM13 4h7v4h-7zM13 11h7v9h-7zM4 14h7v6H4z"/>`,
	"students": `<circle cx="9" cy="8" r="3.5"/><path d="M2.5 20c0-3.6 2.9-6 6.5-6s6.5 2.4 6.5 6M16 5a3.5 3.5 0 0 1 0 6.5M18 14.5c2.1.8 3.5 2.8 3.5 5.5"/>`,
	"key":      `<circle cx="8" cy="15" r="4"/><path d="M11 12l8.5-8.5M16 7l3 3"/>`,
	"webhook":  `<path d="M4 12h10M10 7l5 5-5 5"/><path d="M15 4h3a2 2 0 0 1 2 2v12a2 2 0 0 1-2 2h-3"/>`,
	"roster":   `<path d="M7 3h7l4 4v14H7zM14 3v4h4M10 12h5M10 16h5"/>`,
	"lms":      `<path d="M12 4l10 5-10 5L2 9zM6 11v5c0 1.7 2.7 3 6 3s6-1.3 6-3v-5"/>`,
	"plan":     `<path d="M4 20V4M4 20h16M7 15l4-4 3 3 5-7"/>`,
	"sandbox":  `<circle cx="12" cy="13" r="7"/><path d="M12 9v4l3 2M9 3h6"/>`,
	"audit":    `<path d="M12 3l7 3v5c0 5-3 8-7 10-4-2-7-5-7-10V6zM9 12l2 2 4-4"/>`,
	"docs":     `<path d="M5 4h6a2 2 0 0 1 2 2v14a2 2 0 0 0-2-2H5zM13 6a2 2 0 0 1 2-2h4v14h-4a2 2 0 0 0-2 2"/>`,
	"code":     `<path d="M8 7l-5 5 5 5M16 7l5 5-5 5M14 4l-4 16"/>`,
	"settings": `<circle cx="12" cy="12" r="3"/><path d="M12 3v3M12 18v3M3 12h3M18 12h3M5.6 5.6l2.1 2.1M16.3 16.3l2.1 2.1M18.4 5.6l-2.1 2.1M7.7 16.3l-2.1 2.1"/>`,
	"lock":     `<path d="M6 11h12v9H6zM9 11V7a3 3 0 0 1 6 0v4"/>`,
	"screen":   `<path d="M3 5h18v11H3zM9 20h6M12 16v4"/>`,
	"staff":    `<circle cx="12" cy="8" r="3.5"/><path d="M5 20c0-3.8 3.1-6.5 7-6.5s7 2.7 7 6.5M16 4l2 2 3.5-3.5"/>`,
	"mail":     `<path d="M3 6h18v12H3zM3 7l9 6 9-6"/>`,
	"search":   `<circle cx="11" cy="11" r="6.5"/><path d="M16 16l4.5 4.5"/>`,
	"warning":  `<path d="M12 4l9 16H3zM12 10v4M12 17v.2"/>`,
}

// icon is a picture that says nothing which the text beside it does not.
func icon(name string) template.HTML {
	//nolint:gosec // fixed text
	return template.HTML(`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true">` + icons[name] + `</svg>`)
}
