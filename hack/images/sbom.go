package main

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"

	"github.com/registrar-dev/registrar/hack/internal/licences"
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

// spdx lists what is in the binary, with its licences, as an SPDX 2.3 document.
func (b build) spdx(name, arch string, all []licences.Dependency) ([]byte, error) {
	const document = "DOCUMENT"
	title := name + "-linux-" + arch
	doc := &spdx.Document{
		SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: document, DocumentName: title,
		DocumentNamespace: "https://github.com/registrar-dev/registrar/sbom/" + title + "/" + b.revision,
		CreationInfo: &spdx.CreationInfo{
			Created:  b.at.Format(time.RFC3339),
			Creators: []common.Creator{{CreatorType: "Tool", Creator: "hack/images"}},
		},
	}
	relate := func(from, kind string, to string) {
		doc.Relationships = append(doc.Relationships, &spdx.Relationship{
			RefA: common.MakeDocElementID("", from), Relationship: kind, RefB: common.MakeDocElementID("", to),
		})
	}
	own := licences.Dependency{Name: b.info.Main.Path, Version: b.info.Main.Version, Licences: []string{"Apache-2.0"}}
	for i, d := range append([]licences.Dependency{own}, all...) {
		id := strconv.Itoa(i)
		doc.Packages = append(doc.Packages, &spdx.Package{
			PackageName:             d.Name,
			PackageSPDXIdentifier:   common.ElementID(id),
			PackageVersion:          d.Version,
			PackageDownloadLocation: "NOASSERTION",
			PackageLicenseConcluded: d.Expression(),
			PackageLicenseDeclared:  d.Expression(),
			PackageCopyrightText:    "NOASSERTION",
			PackageExternalReferences: []*spdx.PackageExternalReference{{
				Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL, Locator: d.PURL(),
			}},
		})
		if i == 0 {
			relate(document, common.TypeRelationshipDescribe, id)
		} else {
			relate("0", common.TypeRelationshipDependsOn, id)
		}
	}
	var text bytes.Buffer
	err := spdxjson.Write(doc, &text, spdxjson.Indent("  "))
	return text.Bytes(), err
}

// contents are the dependencies that are in the binary: its modules, each of which needs a known licence,
// Go's library, and what comes from no module.
func (b build) contents(all []licences.Dependency) ([]licences.Dependency, error) {
	within := map[string]bool{}
	for _, m := range b.info.Deps {
		if m.Replace != nil && !strings.HasPrefix(m.Replace.Path, ".") {
			m = m.Replace
		}
		within[m.Path+" "+m.Version] = true
	}
	var in []licences.Dependency
	for _, d := range all {
		key := d.Name + " " + d.Version
		if d.Module && !within[key] {
			continue
		}
		delete(within, key)
		in = append(in, d)
	}
	if len(within) > 0 {
		return nil, fmt.Errorf("no licence is known of %v", slices.Sorted(maps.Keys(within)))
	}
	return in, nil
}
