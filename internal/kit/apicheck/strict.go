package apicheck

import (
	"errors"
	"fmt"

	"github.com/getkin/kin-openapi/openapi3"
)

// strict finds objects in answers that would let an undocumented field pass.
func strict(doc *openapi3.T) error {
	s := strictness{done: map[*openapi3.Schema]bool{}}
	for path, item := range doc.Paths.Map() {
		for method, operation := range item.Operations() {
			for status, response := range operation.Responses.Map() {
				for media, content := range response.Value.Content {
					s.schema(fmt.Sprintf("%s %s %s %s", method, path, status, media), content.Schema, false)
				}
			}
		}
	}
	return errors.Join(s.errs...)
}

type strictness struct {
	done map[*openapi3.Schema]bool
	errs []error
}

// schema walks down; composed says that the schema is a part of an allOf, whose whole
// closes the object with unevaluatedProperties.
func (s *strictness) schema(at string, ref *openapi3.SchemaRef, composed bool) {
	if ref == nil || ref.Value == nil || s.done[ref.Value] {
		return
	}
	v := ref.Value
	if !composed {
		s.done[v] = true
	}
	object := len(v.Properties) > 0 || v.Type.Is(openapi3.TypeObject)
	closed := v.AdditionalProperties.Has != nil || v.AdditionalProperties.Schema != nil || v.UnevaluatedProperties.Has != nil || v.UnevaluatedProperties.Schema != nil
	if object && !closed && !composed {
		s.errs = append(s.errs, fmt.Errorf("%s: an object without additionalProperties or unevaluatedProperties", at))
	}
	for name, p := range v.Properties {
		s.schema(at+" ."+name, p, false)
	}
	for _, part := range v.AllOf {
		s.schema(at+" allOf", part, closed || composed)
	}
	for _, list := range []openapi3.SchemaRefs{v.AnyOf, v.OneOf} {
		for _, part := range list {
			s.schema(at+" anyOf", part, composed)
		}
	}
	s.schema(at+" []", v.Items, false)
	s.schema(at+" {}", v.AdditionalProperties.Schema, false)
}
