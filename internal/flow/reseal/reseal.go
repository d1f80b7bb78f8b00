// Package reseal encrypts stored secrets with the keyset's present key when an older one sealed them, so
// that the older one can be dropped.
package reseal

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/registrar-dev/registrar/internal/domain/email"
	"github.com/registrar-dev/registrar/internal/domain/factor"
	"github.com/registrar-dev/registrar/internal/domain/lms"
	"github.com/registrar-dev/registrar/internal/domain/lti"
	"github.com/registrar-dev/registrar/internal/domain/provider"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/page"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/replay"
	"github.com/registrar-dev/registrar/internal/kit/seal"
)

// Columns are all that hold sealed values.
func Columns() []seal.Column {
	return []seal.Column{webhook.Sealed, lms.Sealed, lti.Sealed, email.Sealed, factor.Sealed, page.Sealed, provider.Sealed, replay.Sealed, student.Sealed}
}

// batch is how many values one transaction seals again.
const batch = 200

// Count counts, for each column, what is still sealed with an older key.
type Count struct {
	Column seal.Column
	Older  int
}

// Counts counts for every column. It reads them whole.
func Counts(ctx context.Context, q pg.Querier, box *seal.Box) (counts []Count, older int, err error) {
	for _, c := range Columns() {
		n, err := countOlder(ctx, q, c, box.Primary())
		if err != nil {
			return nil, 0, err
		}
		counts, older = append(counts, Count{c, n}), older+n
	}
	return counts, older, nil
}

// Service seals again, in one process at a time.
type Service struct {
	DB  *pg.DB
	Box *seal.Box
	Log *slog.Logger

	older *prometheus.GaugeVec
	said  bool // that the older keys can be dropped
}

// New makes a Service, and its metric.
func New(db *pg.DB, box *seal.Box, log *slog.Logger, reg prometheus.Registerer) *Service {
	s := &Service{DB: db, Box: box, Log: log, older: prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "registrar_sealed_with_older_key", Help: "Stored secrets that an older key of the keyset encrypts; 0 everywhere when it can be dropped."},
		[]string{"table"})}
	reg.MustRegister(s.older)
	for _, c := range Columns() {
		s.older.WithLabelValues(c.Table)
	}
	return s
}

// Sweep seals again whatever an older key sealed. It goes on where another one stopped, and does nothing while
// the keyset has one key.
func (s *Service) Sweep(ctx context.Context) error {
	if !s.Box.Rotating() {
		return nil
	}
	began := time.Now()
	sealed, err := s.all(ctx)
	if err != nil {
		return err
	}
	counts, older, err := Counts(ctx, s.DB, s.Box)
	if err != nil {
		return err
	}
	for _, c := range counts {
		s.older.WithLabelValues(c.Column.Table).Set(float64(c.Older))
	}
	if sealed > 0 {
		s.Log.InfoContext(ctx, "secrets are encrypted with the present key", "now", sealed, "left", older, "seconds", time.Since(began).Seconds())
	}
	if older == 0 && !s.said {
		s.Log.InfoContext(ctx, "nothing is encrypted with an older key: once every program writes with the present one, `api-server rotate-keyset drop` takes the older ones out of the keyset")
	}
	s.said = older == 0
	return nil
}

func (s *Service) all(ctx context.Context) (sealed int, err error) {
	for _, c := range Columns() {
		n, err := s.column(ctx, c)
		sealed += n
		if err != nil {
			return sealed, err
		}
	}
	return sealed, nil
}

// column goes once through a column. The metric counts down what it found there at first.
func (s *Service) column(ctx context.Context, c seal.Column) (sealed int, err error) {
	older, err := countOlder(ctx, s.DB, c, s.Box.Primary())
	if err != nil {
		return 0, err
	}
	s.older.WithLabelValues(c.Table).Set(float64(older))
	for after := "(0,0)"; older > 0; {
		n, last, err := s.some(ctx, c, after)
		if err != nil {
			return sealed, err
		}
		sealed += n
		s.older.WithLabelValues(c.Table).Set(float64(max(older-sealed, 0)))
		if n < batch {
			return sealed, nil
		}
		after = last
	}
	return sealed, nil
}

// some seals a batch of values again, those behind a tuple.
func (s *Service) some(ctx context.Context, c seal.Column, after string) (n int, last string, err error) {
	err = s.DB.InTx(ctx, func(tx *pg.Tx) error {
		rows, err := lockOlder(ctx, tx, c, s.Box.Primary(), after, batch)
		if n = len(rows); err != nil || n == 0 {
			return err
		}
		last = rows[n-1].Tuple
		for i, r := range rows {
			plain, err := s.Box.Open(ctx, r.Sealed, r.Context)
			if err != nil {
				return err
			}
			if rows[i].Sealed, err = s.Box.Seal(ctx, plain, r.Context); err != nil {
				return err
			}
		}
		return update(ctx, tx, c, rows)
	})
	return n, last, err
}
