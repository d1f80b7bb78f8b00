package roster

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/registrar-dev/registrar/internal/kit/check"
)

// The limit is on both sections together, and reading one again does not count it twice.
// Reference: limits#roster-size.
func TestSectionsAreBoundedTogether(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, name := range []string{PeopleFile, EnrollmentsFile} {
		f, err := w.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(f, "twelve bytes")
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := Open(bytes.NewReader(b.Bytes()), int64(b.Len()), ZipForm)
	if err != nil {
		t.Fatal(err)
	}
	drain := func(s *section) error {
		r, err := s.open()
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.Copy(io.Discard, r)
		return errors.Join(err, r.Close())
	}
	for range 2 {
		if err := errors.Join(drain(file.people), drain(file.enrollments)); check.NoError(t, err, "%d bytes were read; %v", file.total(), err) {
			check.Equal(t, "number of bytes", file.total(), 24, "%d bytes were read; %v", file.total(), err)
		}
	}
	*file.inflated[0] = maxInflated - 11 // as if so much had come out of the people
	if err := drain(file.enrollments); !errors.Is(err, errInflated) {
		t.Errorf("the second section ended in %v", err)
	}
}
