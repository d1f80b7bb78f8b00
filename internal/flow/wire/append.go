package wire

import (
	"github.com/registrar-dev/registrar/internal/kit/appendjson"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/decimal"
)

// AppendJSON writes r as encoding/json does, several times as fast.
func (r *Result) AppendJSON(b []byte) []byte {
	b = appendjson.String(append(b, `{"id":`...), r.ID)
	b = appendjson.String(append(b, `,"kind":`...), r.Kind)
	b = r.Student.appendJSON(append(b, `,"student":`...))
	b = r.Item.appendJSON(append(b, `,"item":`...))
	b = appendjson.String(append(b, `,"attempt":`...), r.Attempt)
	b = appendjson.Or(append(b, `,"started_at":`...), r.StartedAt, clock.AppendTimestamp)
	b = appendjson.Or(append(b, `,"completed_at":`...), r.CompletedAt, clock.AppendTimestamp)
	b = appendjson.Or(append(b, `,"released_at":`...), r.ReleasedAt, clock.AppendTimestamp)
	b = decimal.Append(append(b, `,"score":`...), r.Score)
	b = decimal.Append(append(b, `,"max_score":`...), r.MaxScore)
	b = decimal.Append(append(b, `,"percentage":`...), r.Percentage)
	b = appendjson.String(append(b, `,"score_label":`...), r.ScoreLabel)
	b = appendjson.Raw(append(b, `,"sections":`...), r.Sections)
	b = appendjson.String(append(b, `,"result_url":`...), r.ResultURL)
	b = appendjson.Or(append(b, `,"section_practiced":`...), r.SectionPracticed, appendjson.String)
	return append(b, '}')
}

func (p *Person) appendJSON(b []byte) []byte {
	b = appendjson.Int(append(b, `{"user_id":`...), p.UserID)
	b = appendjson.String(append(b, `,"email":`...), p.Email)
	b = appendjson.String(append(b, `,"first_name":`...), p.FirstName)
	b = appendjson.String(append(b, `,"last_name":`...), p.LastName)
	return append(b, '}')
}

func (i *ResultItem) appendJSON(b []byte) []byte {
	b = appendjson.Int(append(b, `{"id":`...), i.ID)
	b = appendjson.String(append(b, `,"title":`...), i.Title)
	b = appendjson.String(append(b, `,"type":`...), i.Type)
	b = appendjson.String(append(b, `,"type_label":`...), i.TypeLabel)
	return append(b, '}')
}
