// Package client calls Registrar's partner API from Go.
//
//	c, err := client.New("https://registrar.example/api/v1/", os.Getenv("API_KEY"))
//	...
//	answer, err := c.ProvisionStudentWithResponse(ctx, nil, client.ProvisionRequest{
//		Email: "asha@north-institute.org", FirstName: "Asha", Courses: &client.TextList{"ielts"}})
//	...
//	fmt.Println(answer.Student().UserID)
//
// Types and calls are generated from the API's OpenAPI document; a call is named like its
// operation there, with WithResponse behind it. In a request what may be left out is a pointer,
// for new(false), and is not sent where it is nil. In an answer a pointer is nil where the API
// says null or nothing.
//
// An answer of 400 and above is a [*Fault], the error of every call. Calls may be made at
// the same time. They take as long as their context lets them.
//
// Broken connections, 429 and 5xx are tried again, five times in all. Each change carries an
// Idempotency-Key, its caller's own or a random one, so it is carried out once.
//
// Lists are read page by page with [ClientWithResponses.StudentPages] and its sisters; the
// cursor of the last page may be stored, to read on another day. An [Event] of
// [ClientWithResponses.EventPages] is one of several types, which Event.ValueByDiscriminator returns.
package client

//go:generate sh -c "go run ../internal/openapi/document > partner.tmp.yaml"
//go:generate go tool -modfile=../../hack/tools/go.mod oapi-codegen -config oapi-codegen.yaml partner.tmp.yaml
//go:generate rm partner.tmp.yaml
