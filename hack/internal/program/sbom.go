package program

import (
	"bytes"
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

// list is an SPDX 2.3 document that is being written.
type list struct {
	*spdx.Document

	ids map[string]string // of the dependencies, by name and version
}

const document = "DOCUMENT"

func (s Source) newList(title string) list {
	return list{&spdx.Document{
		SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: document, DocumentName: title,
		DocumentNamespace: "https://github.com/registrar-dev/registrar/sbom/" + title + "/" + s.Revision,
		CreationInfo: &spdx.CreationInfo{
			Created:  s.At.Format(time.RFC3339),
			Creators: []common.Creator{{CreatorType: "Tool", Creator: "hack/images"}},
		},
	}, map[string]string{}}
}

func (l list) relate(from, kind, to string) {
	l.Relationships = append(l.Relationships, &spdx.Relationship{
		RefA: common.MakeDocElementID("", from), Relationship: kind, RefB: common.MakeDocElementID("", to),
	})
}

// add adds a package, or finds the one that is there, and returns its id.
func (l list) add(d licences.Dependency) (id string) {
	key := d.Name + " " + d.Version
	if id, there := l.ids[key]; there {
		return id
	}
	p := l.newPackage(d.Name, d.Version, d.Expression())
	p.PackageExternalReferences = []*spdx.PackageExternalReference{{
		Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL, Locator: d.PURL(),
	}}
	l.ids[key] = string(p.PackageSPDXIdentifier)
	return l.ids[key]
}

func (l list) newPackage(name, version, licence string) *spdx.Package {
	p := &spdx.Package{
		PackageName:             name,
		PackageSPDXIdentifier:   common.ElementID(strconv.Itoa(len(l.Packages))),
		PackageVersion:          version,
		PackageDownloadLocation: "NOASSERTION",
		PackageLicenseConcluded: licence,
		PackageLicenseDeclared:  licence,
		PackageCopyrightText:    "NOASSERTION",
	}
	l.Packages = append(l.Packages, p)
	return p
}

func (l list) text() ([]byte, error) {
	var text bytes.Buffer
	err := spdxjson.Write(l.Document, &text, spdxjson.Indent("  "))
	return text.Bytes(), err
}

// ownLicence is this repository's.
const ownLicence = "Apache-2.0"

// module is the module that a program is of, in the source's version.
func (s Source) module(m debug.Module) licences.Dependency {
	if s.Version != "" {
		m.Version = "v" + s.Version
	}
	return licences.Dependency{Name: m.Path, Version: m.Version, Licences: []string{ownLicence}}
}

// SPDX lists what is in the program, with its licences, as an SPDX document.
func (s Source) SPDX(b *Binary) ([]byte, error) {
	l := s.newList(b.Name + "-" + b.Platform.String())
	own := l.add(s.module(b.main))
	l.relate(document, common.TypeRelationshipDescribe, own)
	for _, d := range b.Within {
		l.relate(own, common.TypeRelationshipDependsOn, l.add(d))
	}
	return l.text()
}

// ReleaseSPDX lists a release's files, by name with their SHA-256 in hexadecimal digits, and the programs in them, each with what
// it is made of, as an SPDX document.
func (s Source) ReleaseSPDX(files map[string]string, programs []*Binary) ([]byte, error) {
	l := s.newList("registrar-" + s.Version)
	release := string(l.newPackage("registrar", s.Version, ownLicence).PackageSPDXIdentifier)
	l.relate(document, common.TypeRelationshipDescribe, release)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		p := l.newPackage(name, s.Version, ownLicence)
		p.PackageFileName = name
		p.PackageChecksums = []common.Checksum{{Algorithm: common.SHA256, Value: files[name]}}
		l.relate(release, common.TypeRelationshipContains, string(p.PackageSPDXIdentifier))
	}
	for _, b := range programs {
		p := string(l.newPackage(b.Name+" for "+b.Platform.String(), s.Version, ownLicence).PackageSPDXIdentifier)
		l.relate(release, common.TypeRelationshipContains, p)
		for _, d := range b.Within {
			l.relate(p, common.TypeRelationshipDependsOn, l.add(d))
		}
	}
	return l.text()
}

// contents are the dependencies that are in a binary: its modules, each of which needs a known licence,
// Go's library, and what comes from no module.
func contents(info *debug.BuildInfo, all []licences.Dependency) ([]licences.Dependency, error) {
	within := map[string]bool{}
	for _, m := range info.Deps {
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
