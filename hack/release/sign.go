package main

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	provenance "github.com/in-toto/attestation/go/predicates/provenance/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/signature/dsse"
	cosign "github.com/sigstore/sigstore/pkg/signature/payload"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/registrar-dev/registrar/hack/internal/program"
)

// key signs as cosign does with a key: ECDSA over SHA-256, in base64. OpenSSL can check it, too.
type key struct {
	signature.SignerVerifier

	public []byte // PEM
}

// signer reads the key, or makes one that lives as long as this process; nil for a final release without a key.
func (o options) signer() (*key, error) {
	var private *ecdsa.PrivateKey
	switch {
	case o.key != "":
		text, err := os.ReadFile(o.key)
		if err != nil {
			return nil, err
		}
		read, err := cryptoutils.UnmarshalPEMToPrivateKey(text, cryptoutils.StaticPasswordFunc([]byte(os.Getenv("COSIGN_PASSWORD"))))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o.key, err)
		}
		var ok bool
		if private, ok = read.(*ecdsa.PrivateKey); !ok {
			return nil, fmt.Errorf("%s: a %T, which is no ECDSA key as cosign generate-key-pair makes it", o.key, read)
		}
	case o.final:
		return nil, nil //nolint:nilnil // the workflow signs without a key
	default:
		say("a trial: signed with a key that is made now and kept nowhere")
		var err error
		if private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
			return nil, err
		}
	}
	signs, err := signature.LoadECDSASignerVerifier(private, crypto.SHA256)
	if err != nil {
		return nil, err
	}
	public, err := cryptoutils.MarshalPublicKeyToPEM(private.Public())
	return &key{signs, public}, err
}

func (k *key) sign(content []byte) ([]byte, error) {
	made, err := k.SignMessage(bytes.NewReader(content))
	return []byte(base64.StdEncoding.EncodeToString(made) + "\n"), err
}

// sumUp are the SHA-256 of a folder's files, in hexadecimal digits, by name.
func sumUp(dir string) (map[string]string, error) {
	names, err := list(dir)
	if err != nil {
		return nil, err
	}
	sums := map[string]string{}
	for _, name := range names {
		if name == unfinished {
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(content)
		sums[name] = hex.EncodeToString(sum[:])
	}
	return sums, nil
}

// sumLine is a line of sha256sum. A name is of one folder.
var sumLine = regexp.MustCompile(`^([0-9a-f]{64})  ([0-9A-Za-z][0-9A-Za-z._-]*)$`)

func readSums(dir string) (map[string]string, error) {
	text, err := os.ReadFile(filepath.Join(dir, sumsFile))
	if err != nil {
		return nil, err
	}
	sums := map[string]string{}
	for line := range strings.Lines(string(text)) {
		parts := sumLine.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if parts == nil || sums[parts[2]] != "" {
			return nil, fmt.Errorf("%s: %q is no line of it, or the second for a file", sumsFile, line)
		}
		sums[parts[2]] = parts[1]
	}
	return sums, nil
}

// sign adds the provenance, the signatures and the sums to what was built. Without a key there are no signatures.
func (o options) sign(s program.Source, k *key, started time.Time) error {
	write := func(name string, content []byte, err error) error {
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return os.WriteFile(filepath.Join(o.out, name), content, 0o644)
	}
	statement, err := o.provenance(s, started)
	if err := write(provenanceFile, statement, err); err != nil {
		return err
	}
	if k != nil {
		if err := o.signParts(k, statement, write); err != nil {
			return err
		}
	}
	sums, err := sumUp(o.out)
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		fmt.Fprintf(&text, "%s  %s\n", sums[name], name)
	}
	if err := write(sumsFile, []byte(text.String()), nil); err != nil {
		return err
	}
	if k != nil {
		signed, err := k.sign([]byte(text.String()))
		if err := write(sumsSignature, signed, err); err != nil {
			return err
		}
	}
	return os.Remove(filepath.Join(o.out, unfinished))
}

// signParts signs the images, as cosign attach signature takes it, and the provenance.
func (o options) signParts(k *key, statement []byte, write func(string, []byte, error) error) error {
	refs, err := readImages(o.out)
	if err != nil {
		return err
	}
	for program, ref := range refs {
		digest, err := name.NewDigest(ref)
		if err != nil {
			return err
		}
		content, err := json.Marshal(cosign.Cosign{Image: digest})
		if err := write(program+payload, content, err); err != nil {
			return err
		}
		signed, err := k.sign(content)
		if err := write(program+payloadSignature, signed, err); err != nil {
			return err
		}
	}
	envelope, err := dsse.WrapSigner(k, envelopeType).SignMessage(bytes.NewReader(statement))
	return errors.Join(write(envelopeFile, envelope, err), write(publicKey, k.public, nil))
}

// readImages are the images of a release, by program: name:version@digest.
func readImages(dir string) (map[string]string, error) {
	text, err := os.ReadFile(filepath.Join(dir, imagesFile))
	if err != nil {
		return nil, err
	}
	refs := map[string]string{}
	for line := range strings.Lines(string(text)) {
		ref := strings.TrimSpace(line)
		digest, err := name.NewDigest(ref)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", imagesFile, err)
		}
		refs[filepath.Base(digest.RepositoryStr())] = ref
	}
	return refs, nil
}

const (
	repository    = "https://github.com/registrar-dev/registrar"
	predicateType = "https://slsa.dev/provenance/v1"
	envelopeType  = "application/vnd.in-toto+json"
)

// provenance says from what and how the release was built, as SLSA 1 has it: an in-toto statement on every file, and on every image
// by its digest.
func (o options) provenance(s program.Source, started time.Time) ([]byte, error) {
	subjects, err := o.subjects()
	if err != nil {
		return nil, err
	}
	asked, err := structpb.NewStruct(map[string]any{"version": o.version, "repository": repository, "registry": o.registry})
	if err != nil {
		return nil, err
	}
	found, err := structpb.NewStruct(map[string]any{
		"go": runtime.Version(), "sourceDateEpoch": s.At.Unix(), "trial": !o.final, "builtTwice": !o.once, "uncommitted": strings.HasSuffix(s.Revision, "-dirty"),
	})
	if err != nil {
		return nil, err
	}
	builder := repository + "/blob/main/hack/release"
	if workflow := os.Getenv("GITHUB_WORKFLOW_REF"); workflow != "" {
		builder = "https://github.com/" + workflow
	}
	said := &provenance.Provenance{
		BuildDefinition: &provenance.BuildDefinition{
			BuildType: repository + "/blob/main/hack/release", ExternalParameters: asked, InternalParameters: found,
			ResolvedDependencies: []*intoto.ResourceDescriptor{{Uri: "git+" + repository, Digest: map[string]string{"gitCommit": strings.TrimSuffix(s.Revision, "-dirty")}}},
		},
		RunDetails: &provenance.RunDetails{
			Builder:  &provenance.Builder{Id: builder},
			Metadata: &provenance.BuildMetadata{StartedOn: timestamppb.New(started), FinishedOn: timestamppb.Now()},
		},
	}
	predicate := &structpb.Struct{}
	if err := convert(said, predicate); err != nil {
		return nil, err
	}
	statement := &intoto.Statement{Type: intoto.StatementTypeUri, Subject: subjects, PredicateType: predicateType, Predicate: predicate}
	if err := errors.Join(said.Validate(), statement.Validate()); err != nil {
		return nil, err
	}
	text, err := protojson.Marshal(statement)
	if err != nil {
		return nil, err
	}
	var indented bytes.Buffer
	err = json.Indent(&indented, text, "", "  ")
	indented.WriteByte('\n')
	return indented.Bytes(), err
}

// convert makes a message of another, by their JSON.
func convert(from, to proto.Message) error {
	text, err := protojson.Marshal(from)
	return errors.Join(err, protojson.Unmarshal(text, to))
}

// subjects are what a provenance speaks of: the files that were built, and the images.
func (o options) subjects() (all []*intoto.ResourceDescriptor, err error) {
	sums, err := sumUp(o.out)
	if err != nil {
		return nil, err
	}
	refs, err := readImages(o.out)
	if err != nil {
		return nil, err
	}
	for _, ref := range refs {
		name, digest, _ := strings.Cut(ref, "@sha256:")
		sums[strings.TrimSuffix(name, ":"+o.version)] = digest
	}
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		all = append(all, &intoto.ResourceDescriptor{Name: name, Digest: map[string]string{"sha256": sums[name]}})
	}
	return all, nil
}
