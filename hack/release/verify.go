package main

import (
	"bytes"
	"context"
	"crypto"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	provenance "github.com/in-toto/attestation/go/predicates/provenance/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/signature/dsse"
	cosign "github.com/sigstore/sigstore/pkg/signature/payload"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/registrar-dev/registrar/hack/internal/program"
)

// verification checks a release by its folder alone. Every check stands by itself: a fault that one would pass is another's.
type verification struct {
	tools

	dir, version, registry string
	plugin                 []program.Platform
	public                 []byte // the key that must have signed, as PEM; nil: the one in the folder
	unsigned               bool   // no signature is asked for: the workflow makes them

	sums map[string]string // of the files
	refs map[string]string // of the images, by program
	key  signature.Verifier

	revision string // that the provenance names, as programs and images say it
}

func (v *verification) run(ctx context.Context) error {
	for _, c := range []struct {
		what string
		do   func(context.Context) (string, error)
	}{
		{"sums", v.checkSums},
		{"signatures", v.checkSignatures},
		{"provenance", v.checkProvenance},
		{"images", v.checkImages},
		{"kubectl's plugin", v.checkPlugins},
		{"chart", v.checkChart},
		{"definitions and operator", v.checkManifests},
		{"documents", v.checkDocuments},
		{"TypeScript client", v.checkClient},
		{"lists of contents", v.checkLists},
		{"notes", v.checkNotes},
	} {
		found, err := c.do(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", c.what, err)
		}
		say("right: %s: %s", c.what, found)
	}
	return nil
}

func (v *verification) path(name string) string { return filepath.Join(v.dir, name) }

func (v *verification) read(name string) ([]byte, error) { return os.ReadFile(v.path(name)) }

// checkSums finds files that differ, are missing, or are not of the release.
func (v *verification) checkSums(context.Context) (string, error) {
	var err error
	if v.sums, err = readSums(v.dir); err != nil {
		return "", err
	}
	there, err := sumUp(v.dir)
	if err != nil {
		return "", err
	}
	var faults []string
	for _, name := range slices.Sorted(maps.Keys(v.sums)) {
		switch {
		case there[name] == "":
			faults = append(faults, name+" is missing")
		case there[name] != v.sums[name]:
			faults = append(faults, fmt.Sprintf("%s has changed: %.12s, not %.12s", name, there[name], v.sums[name]))
		}
		delete(there, name)
	}
	delete(there, sumsFile)
	delete(there, sumsSignature)
	delete(there, sumsBundle)
	for _, name := range slices.Sorted(maps.Keys(there)) {
		faults = append(faults, name+" is no file of the release")
	}
	if len(faults) > 0 {
		return "", errors.New(strings.Join(faults, "; "))
	}
	v.refs, err = readImages(v.dir)
	return fmt.Sprintf("%d files", len(v.sums)), err
}

func (v *verification) checkSignatures(context.Context) (string, error) {
	if v.unsigned {
		return "none here; the workflow signs the sums and the images", nil
	}
	public, err := v.read(publicKey)
	if err != nil {
		return "", fmt.Errorf("it is not signed: %w", err)
	}
	if v.public != nil && !bytes.Equal(public, v.public) {
		return "", errors.New(publicKey + " is another key than the one that signed")
	}
	parsed, err := cryptoutils.UnmarshalPEMToPublicKey(public)
	if err != nil {
		return "", fmt.Errorf("%s: %w", publicKey, err)
	}
	if v.key, err = signature.LoadVerifier(parsed, crypto.SHA256); err != nil {
		return "", fmt.Errorf("%s: %w", publicKey, err)
	}
	if _, err := v.signed(sumsFile, sumsSignature); err != nil {
		return "", err
	}
	for _, name := range program.InImages {
		content, err := v.signed(name+payload, name+payloadSignature)
		if err != nil {
			return "", err
		}
		var said cosign.Cosign
		if err := json.Unmarshal(content, &said); err != nil {
			return "", fmt.Errorf("%s: %w", name+payload, err)
		}
		if want := v.refs[name]; !strings.HasSuffix(want, "@"+said.Image.DigestStr()) || said.Image.Repository.Name() != v.registry+"/"+name {
			return "", fmt.Errorf("%s is about %s, not %s", name+payload, said.Image, want)
		}
	}
	envelope, err := v.read(envelopeFile)
	if err != nil {
		return "", err
	}
	var statement []byte
	wrapped := dsse.WrapVerifier(v.key, dsse.WithExpectedPayloadType(envelopeType), dsse.WithDecodedPayload(&statement))
	if err := wrapped.VerifySignature(bytes.NewReader(envelope), nil); err != nil {
		return "", fmt.Errorf("%s: %w", envelopeFile, err)
	}
	if plain, err := v.read(provenanceFile); err != nil || !bytes.Equal(plain, statement) {
		return "", errors.Join(err, fmt.Errorf("%s holds another statement than %s", envelopeFile, provenanceFile))
	}
	by := "the key that made it"
	if v.public == nil {
		by = publicKey + " beside it: compare that with the one that you know"
	}
	return fmt.Sprintf("of the sums, %d images and the provenance, by %s", len(program.InImages), by), nil
}

// signed reads a file whose signature is right.
func (v *verification) signed(name, signatureName string) ([]byte, error) {
	content, err := v.read(name)
	if err != nil {
		return nil, err
	}
	encoded, err := v.read(signatureName)
	if err != nil {
		return nil, err
	}
	made, err := base64.StdEncoding.Strict().DecodeString(strings.TrimSuffix(string(encoded), "\n"))
	if err == nil {
		err = v.key.VerifySignature(bytes.NewReader(made), bytes.NewReader(content))
	}
	if err != nil {
		return nil, fmt.Errorf("%s does not sign %s: %w", signatureName, name, err)
	}
	return content, nil
}

// checkProvenance holds the statement's subjects against the files and the images.
func (v *verification) checkProvenance(context.Context) (string, error) {
	text, err := v.read(provenanceFile)
	if err != nil {
		return "", err
	}
	var statement intoto.Statement
	var said provenance.Provenance
	if err := protojson.Unmarshal(text, &statement); err != nil {
		return "", err
	}
	if err := errors.Join(statement.Validate(), convert(statement.Predicate, &said)); err != nil {
		return "", err
	}
	if err := said.Validate(); err != nil {
		return "", err
	}
	if statement.PredicateType != predicateType {
		return "", fmt.Errorf("it is a %s, not a %s", statement.PredicateType, predicateType)
	}
	if got := said.BuildDefinition.ExternalParameters.GetFields()["version"].GetStringValue(); got != v.version {
		return "", fmt.Errorf("it is of version %q", got)
	}
	want := map[string]string{}
	for name, sum := range v.sums {
		if !isSignature(name) {
			want[name] = sum
		}
	}
	for name, ref := range v.refs {
		_, want[v.registry+"/"+name], _ = strings.Cut(ref, "@sha256:")
	}
	for _, s := range statement.Subject {
		if want[s.Name] == "" || s.Digest["sha256"] != want[s.Name] {
			return "", fmt.Errorf("it speaks of a %s of the digest %.12s, which is not in the release", s.Name, s.Digest["sha256"])
		}
		delete(want, s.Name)
	}
	if len(want) > 0 {
		return "", fmt.Errorf("it does not speak of %s", strings.Join(slices.Sorted(maps.Keys(want)), ", "))
	}
	if len(said.BuildDefinition.ResolvedDependencies) != 1 {
		return "", errors.New("it names not one commit")
	}
	v.revision = said.BuildDefinition.ResolvedDependencies[0].Digest["gitCommit"]
	if said.BuildDefinition.InternalParameters.GetFields()["uncommitted"].GetBoolValue() {
		v.revision += "-dirty"
	}
	return fmt.Sprintf("%d subjects, of commit %s", len(statement.Subject), program.Source{Revision: v.revision}.ShortRevision()), nil
}

// isSignature says whether a file was made after the provenance.
func isSignature(name string) bool {
	return slices.Contains([]string{provenanceFile, envelopeFile, publicKey}, name) || strings.HasSuffix(name, payload) || strings.HasSuffix(name, payloadSignature)
}
