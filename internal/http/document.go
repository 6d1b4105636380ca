package http

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"

	"ckscale/internal/http/api"
)

// command is what the document says of one CloudStack command. The check of
// parameters, the router and listApis all follow from it.
type command struct {
	Name        string
	Description string
	Method      string // GET for reads, POST for changes
	Async       bool   // answered with a jobid
	AdminOnly   bool
	Open        bool   // nobody is asked who he is
	Since       string // version that brought it, or ""
	Params      []param
	Related     []string // other commands that give the same object
	Response    []field  // of the object, or of one row of the list; of the job's result if Async
}

// param is one request parameter.
type param struct {
	Name        string // lower case
	Type        string // uuid, string, long, integer, boolean, list, map or date
	ElementType string // of a list: one of the types above
	Description string
	Since       string
	Related     string // commands that list what the value names, comma separated
	Required    bool
	MaxLength   int // of a string, in characters
}

// field is one field of a response.
type field struct {
	Name        string
	Type        string // string, integer, long, boolean, date, list, map or responseobject
	Description string
	Fields      []field // of an object or of a list of objects
}

// defaultLength is CloudStack's limit for a string that names no other.
const defaultLength = 255

// jsonType is the media type under which the document declares all bodies.
const jsonType = "application/json"

// commandPath is where the document keeps a command.
const commandPath = "/client/api/"

// Extensions of the document.
const (
	extType    = "x-cloudstack-type"    // CloudStack type where JSON's is wider: uuid, date
	extSince   = "x-cloudstack-since"   // CloudStack version
	extRelated = "x-cloudstack-related" // commands, comma separated
	extResult  = "x-cloudstack-result"  // name of the schema of a job's result: the command is async
	extAdmin   = "x-cloudstack-admin-only"
)

// loadCommands returns the commands of the embedded document, by name, which
// nobody may change. It fails when a part that a command needs is missing.
var loadCommands = sync.OnceValues(readCommands)

func readCommands() (map[string]*command, error) {
	doc, err := api.GetSpec()
	if err != nil {
		return nil, fmt.Errorf("read the API document: %w", err)
	}
	commands := make(map[string]*command)
	giving := make(map[*openapi3.Schema][]string) // commands by what they give
	for path, item := range doc.Paths.Map() {
		name, ok := strings.CutPrefix(path, commandPath)
		if !ok {
			return nil, fmt.Errorf("API document: path %s is no command", path)
		}
		for method, op := range item.Operations() {
			if commands[name] != nil {
				return nil, fmt.Errorf("API document: %s has two methods", name)
			}
			gives, err := givenSchema(doc, name, op)
			if err != nil {
				return nil, fmt.Errorf("API document: %s: %w", name, err)
			}
			if commands[name], err = newCommand(name, method, op, gives); err != nil {
				return nil, fmt.Errorf("API document: %s: %w", name, err)
			}
			giving[gives] = append(giving[gives], name)
		}
	}
	for _, names := range giving {
		slices.Sort(names)
		for i, name := range names {
			commands[name].Related = slices.Delete(slices.Clone(names), i, i+1)
		}
	}
	return commands, nil
}

func newCommand(name, method string, op *openapi3.Operation, gives *openapi3.Schema) (*command, error) {
	c := &command{
		Name:        name,
		Description: oneLine(op.Description),
		Method:      method,
		Async:       text(op.Extensions, extResult) != "",
		AdminOnly:   op.Extensions[extAdmin] == true,
		Open:        op.Security != nil && len(*op.Security) == 0,
		Since:       text(op.Extensions, extSince),
		Response:    fieldsOf(gives, nil),
	}
	for _, ref := range op.Parameters {
		p, err := newParam(ref.Value)
		if err != nil {
			return nil, err
		}
		c.Params = append(c.Params, p)
	}
	return c, nil
}

func newParam(p *openapi3.Parameter) (param, error) {
	schema := p.Schema
	if media := p.Content.Get(jsonType); media != nil {
		schema = media.Schema
	}
	if schema == nil || schema.Value == nil || p.In != openapi3.ParameterInQuery || p.Name != strings.ToLower(p.Name) {
		return param{}, fmt.Errorf("parameter %s needs a schema, a lower-case name and a place in the query", p.Name)
	}
	s := schema.Value
	out := param{
		Name:        p.Name,
		Type:        typeOf(s),
		Description: oneLine(p.Description),
		Since:       text(p.Extensions, extSince),
		Related:     text(p.Extensions, extRelated),
		Required:    p.Required,
	}
	if p.Content != nil {
		out.Type = "map"
	}
	if out.Type == "list" {
		out.ElementType = typeOf(s.Items.Value)
	}
	if out.Type == "string" {
		out.MaxLength = defaultLength
		if s.MaxLength != nil {
			out.MaxLength = int(*s.MaxLength)
		}
	}
	return out, nil
}

// givenSchema is the schema of what a command gives: the result of its job,
// one row of its list, or the object under its response name.
func givenSchema(doc *openapi3.T, name string, op *openapi3.Operation) (*openapi3.Schema, error) {
	if result := text(op.Extensions, extResult); result != "" {
		if ref := doc.Components.Schemas[result]; ref != nil {
			return ref.Value, nil
		}
		return nil, fmt.Errorf("no schema %q", result)
	}
	ok := op.Responses.Status(200)
	if ok == nil || ok.Value.Content.Get(jsonType) == nil {
		return nil, errors.New("no JSON answer for status 200")
	}
	inner := ok.Value.Content.Get(jsonType).Schema.Value.Properties[responseKey(name)]
	if inner == nil {
		return nil, fmt.Errorf("its answer has no key %s", responseKey(name))
	}
	if inner.Value.Properties["count"] == nil {
		return inner.Value, nil
	}
	for _, p := range inner.Value.Properties {
		if p.Value.Type.Is("array") {
			return p.Value.Items.Value, nil
		}
	}
	return nil, errors.New("its answer has a count and no list")
}

// responseKey is the one top-level key of a command's answer.
func responseKey(name string) string { return strings.ToLower(name) + "response" }

// fieldsOf returns an object's fields by name. within are the objects around
// it: a schema that contains itself ends there.
func fieldsOf(s *openapi3.Schema, within []*openapi3.Schema) []field {
	if slices.Contains(within, s) {
		return nil
	}
	within = append(slices.Clone(within), s)
	var fields []field
	for name, ref := range s.Properties {
		f := field{Name: name, Type: typeOf(ref.Value), Description: oneLine(ref.Value.Description)}
		switch f.Type {
		case "list":
			f.Fields = fieldsOf(ref.Value.Items.Value, within)
		case "responseobject":
			f.Fields = fieldsOf(ref.Value, within)
		}
		fields = append(fields, f)
	}
	slices.SortFunc(fields, func(a, b field) int { return cmp.Compare(a.Name, b.Name) })
	return fields
}

// typeOf is CloudStack's name for a schema's type. Ids in answers are strings;
// only parameters say uuid.
func typeOf(s *openapi3.Schema) string {
	switch t := text(s.Extensions, extType); {
	case t != "":
		return t
	case s.Type.Is("array"):
		return "list"
	case s.Type.Is("object") && s.AdditionalProperties.Schema != nil:
		return "map"
	case s.Type.Is("object"):
		return "responseobject"
	case s.Type.Is("integer") && s.Format == "int64":
		return "long"
	case s.Type.Is("integer"):
		return "integer"
	case s.Type.Is("boolean"):
		return "boolean"
	case s.Format == "date-time":
		return "date"
	}
	return "string"
}

func text(extensions map[string]any, name string) string {
	s, _ := extensions[name].(string)
	return s
}

// oneLine undoes the line breaks that the document's source is wrapped with.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
