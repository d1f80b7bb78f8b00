package clock

import (
	"encoding/json"
	"errors"

	"github.com/jackc/pgx/v5/pgtype"
)

// MarshalJSON writes "YYYY-MM-DD", and null for the zero Date.
func (d Date) MarshalJSON() ([]byte, error) {
	if d.IsZero() {
		return []byte("null"), nil
	}
	return json.Marshal(d.String())
}

// UnmarshalJSON reads "YYYY-MM-DD" or null.
func (d *Date) UnmarshalJSON(b []byte) error {
	var s *string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	if s == nil {
		*d = Date{}
		return nil
	}
	v, err := ParseDate(*s)
	if err == nil {
		*d = v
	}
	return err
}

// DateValue lets pgx write a Date; the zero Date is NULL.
func (d Date) DateValue() (pgtype.Date, error) {
	return pgtype.Date{Time: d.Time(), Valid: !d.IsZero()}, nil
}

// ScanDate lets pgx read a Date; NULL is the zero Date.
func (d *Date) ScanDate(v pgtype.Date) error {
	if !v.Valid {
		*d = Date{}
		return nil
	}
	if v.InfinityModifier != pgtype.Finite {
		return errors.New("clock: an infinite date")
	}
	*d = dateOf(v.Time)
	return nil
}
