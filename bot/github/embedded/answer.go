package embedded

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

const docs = "https://docs.github.com/rest"

// An apiError is an error in GitHub's wording, with its HTTP status.
type apiError struct {
	Status  int
	Message string
	Fields  []fieldError
	Doc     string
	Header  http.Header
	Type    string // only of an error that GraphQL answers with status 200
}

// A fieldError is one entry in the list of a validation error.
type fieldError struct {
	Resource string `json:"resource"`
	Field    string `json:"field"`
	Code     string `json:"code"`
	Message  string `json:"message,omitempty"`
}

func (e *apiError) Error() string {
	text := fmt.Sprintf("%d %s", e.Status, e.Message)
	for _, f := range e.Fields {
		text += fmt.Sprintf("; %s.%s: %s %s", f.Resource, f.Field, f.Code, f.Message)
	}
	return text
}

func (e *apiError) body() any {
	if e.Type != "" {
		return map[string]any{"errors": []*gqlError{{Type: e.Type, Message: e.Message}}}
	}
	body := map[string]any{"message": e.Message, "documentation_url": cmp.Or(e.Doc, docs), "status": strconv.Itoa(e.Status)}
	if len(e.Fields) > 0 {
		body["errors"] = e.Fields
	}
	return body
}

func errNotFound() *apiError { return &apiError{Status: 404, Message: "Not Found"} }

func unauthorised(message string) *apiError { return &apiError{Status: 401, Message: message} }

func forbidden(message string) *apiError { return &apiError{Status: 403, Message: message} }

// invalid returns a validation error with one entry. The code is GitHub's word for the defect, such
// as missing_field, invalid or custom.
func invalid(resource, field, code, message string) *apiError {
	return &apiError{Status: 422, Message: "Validation Failed",
		Fields: []fieldError{{Resource: resource, Field: field, Code: code, Message: message}}}
}

// oneOf refuses a query parameter whose value is not one of words.
func (rq *request) oneOf(resource, name string, words ...string) error {
	if word := rq.query(name); word != "" && !slices.Contains(words, word) {
		return invalid(resource, name, "invalid", word+" is not included in the list")
	}
	return nil
}

// asAPIError turns any error into an answer. An error that is not an apiError is a defect of the
// hub and becomes a 500.
func asAPIError(err error) *apiError {
	if api, ok := errors.AsType[*apiError](err); ok {
		return api
	}
	return &apiError{Status: 500, Message: "Server Error: " + err.Error()}
}

// page returns the requested page of a list and sets the Link header.
func page[T any](rq *request, all []T) []T {
	per := rq.perPage()
	n := max(atoiOr(rq.query("page"), 1), 1)
	last := max((len(all)+per-1)/per, 1)
	var links []string
	link := func(p int, rel string) {
		q := rq.URL.Query()
		q.Set("page", strconv.Itoa(p))
		links = append(links, rq.link(q, rel))
	}
	if n > 1 {
		link(min(n-1, last), "prev")
		link(1, "first")
	}
	if n < last {
		link(n+1, "next")
		link(last, "last")
	}
	rq.setLinks(links)
	from := min((n-1)*per, len(all))
	return all[from:min(from+per, len(all))]
}

// perPage returns the requested page size, between 1 and 100.
func (rq *request) perPage() int { return min(max(atoiOr(rq.query("per_page"), 30), 1), 100) }

func (rq *request) link(q url.Values, rel string) string {
	return fmt.Sprintf("<%s%s?%s>; rel=%q", rq.s.url, rq.mount+rq.URL.EscapedPath(), q.Encode(), rel)
}

func (rq *request) setLinks(links []string) {
	if len(links) > 0 {
		rq.header.Set("Link", strings.Join(links, ", "))
	}
}

func atoiOr(text string, or int) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return or
	}
	return n
}

// find returns the first element that meant accepts, or nil.
func find[T any](all []*T, meant func(*T) bool) *T {
	if i := slices.IndexFunc(all, meant); i >= 0 {
		return all[i]
	}
	return nil
}

// count returns how many elements meant accepts.
func count[T any](all []T, meant func(T) bool) (n int) {
	for _, one := range all {
		if meant(one) {
			n++
		}
	}
	return n
}

// each applies form to each element and keeps the order.
func each[T, Form any](all []T, form func(T) Form) []Form {
	out := make([]Form, len(all))
	for i, one := range all {
		out[i] = form(one)
	}
	return out
}

// ptr replaces github.Ptr, which v60 does not have for all types.
func ptr[T any](v T) *T { return &v }

// orNil returns nil for an empty text, so that the field is left out.
func orNil(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
