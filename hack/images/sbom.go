package main

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"strings"
	"time"
)

// build is what Go has written into a binary about its making.
type build struct {
	info     *debug.BuildInfo
	revision string
	at       time.Time // of the commit; 1970 where it is not known
}

func readBuild(binary string) (build, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return build{}, err
	}
	b := build{info: info, at: time.Unix(0, 0).UTC()}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.revision = s.Value
		case "vcs.time":
			if at, err := time.Parse(time.RFC3339, s.Value); err == nil {
				b.at = at.UTC()
			}
		}
	}
	return b, nil
}

// spdx lists the modules in the binary as an SPDX 2.3 document.
func (b build) spdx(name, arch string) ([]byte, error) {
	type reference struct {
		Category string `json:"referenceCategory"`
		Type     string `json:"referenceType"`
		Locator  string `json:"referenceLocator"`
	}
	type pkg struct {
		ID        string      `json:"SPDXID"`
		Name      string      `json:"name"`
		Version   string      `json:"versionInfo"`
		Download  string      `json:"downloadLocation"`
		Analyzed  bool        `json:"filesAnalyzed"`
		License   string      `json:"licenseConcluded"`
		Copyright string      `json:"copyrightText"`
		External  []reference `json:"externalRefs"`
	}
	type relation struct {
		Element string `json:"spdxElementId"`
		Type    string `json:"relationshipType"`
		Related string `json:"relatedSpdxElement"`
	}
	packages := []pkg{}
	relations := []relation{{"SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-0"}}
	for i, m := range b.modules() {
		id := fmt.Sprintf("SPDXRef-%d", i)
		packages = append(packages, pkg{ID: id, Name: m.Path, Version: m.Version, Download: "NOASSERTION", License: "NOASSERTION", Copyright: "NOASSERTION",
			External: []reference{{"PACKAGE-MANAGER", "purl", "pkg:golang/" + strings.ToLower(m.Path) + "@" + m.Version}}})
		if i > 0 {
			relations = append(relations, relation{"SPDXRef-0", "DEPENDS_ON", id})
		}
	}
	title := name + "-linux-" + arch
	text, err := json.MarshalIndent(map[string]any{
		"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": title,
		"documentNamespace": "https://github.com/registrar-dev/registrar/sbom/" + title + "/" + b.revision,
		"creationInfo":      map[string]any{"created": b.at.Format(time.RFC3339), "creators": []string{"Tool: hack/images"}},
		"packages":          packages, "relationships": relations,
	}, "", "  ")
	return append(text, '\n'), err
}

// modules are the program's own, those it uses as they are in the binary, and Go's library.
func (b build) modules() []debug.Module {
	all := []debug.Module{b.info.Main}
	for _, m := range b.info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		all = append(all, *m)
	}
	return append(all, debug.Module{Path: "stdlib", Version: strings.TrimPrefix(b.info.GoVersion, "go")})
}
