package http

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"ckscale/internal/cks"
)

// argument is what was sent for one parameter.
type argument struct {
	value  string
	fields map[int]map[string]string // by index, if sent as name[INDEX].field
}

// foldMap brings parameters into the form in which the document knows them:
// names in lower case, and name[INDEX].field=value as one argument (cks.md
// §1.4). Of two names that differ only in case, the later one counts.
func foldMap(params []pair) (map[string]argument, error) {
	args := make(map[string]argument)
	for _, p := range params {
		if strings.IndexByte(p.name, '[') <= 0 {
			name := strings.ToLower(p.name)
			a := args[name]
			a.value = p.value
			args[name] = a
			continue
		}
		name, index, field, ok := splitMapName(p.name)
		if !ok {
			return nil, cks.Errorf(cks.Malformed, "Unable to decode parameter %s; if specifying an object array, "+
				"please use parameter[index].field=XXX, e.g. userGroupList[0].group=httpGroup", clip(p.name, 100))
		}
		a := args[name]
		if a.fields == nil {
			a.fields = make(map[int]map[string]string)
		}
		if a.fields[index] == nil {
			a.fields[index] = make(map[string]string)
		}
		a.fields[index][field] = p.value
		args[name] = a
	}
	return args, nil
}

// splitMapName takes NAME[INDEX].FIELD apart; the field is whatever follows
// the first dot.
func splitMapName(s string) (name string, index int, field string, ok bool) {
	head, rest, _ := strings.Cut(s, "[")
	number, tail, closed := strings.Cut(rest, "]")
	if !closed || strings.ContainsAny(number, "[.") || strings.ContainsAny(head, "].") || strings.ContainsAny(tail, "[]") {
		return "", 0, "", false
	}
	_, field, dotted := strings.Cut(tail, ".")
	n, err := strconv.ParseInt(number, 10, 32)
	return strings.ToLower(head), int(n), field, dotted && err == nil
}

// canonicalQuery checks the parameters of a command and returns them in the
// form that the generated router binds. Parameters that the command does not
// have are left out: CloudStack ignores them (A11).
func (c *command) canonicalQuery(params []pair) (string, error) {
	args, err := foldMap(params)
	if err != nil {
		return "", err
	}
	if err := c.checkPaging(args); err != nil {
		return "", err
	}
	var query []string
	for _, p := range c.Params {
		a, sent := args[p.Name]
		if !sent && p.Required {
			return "", c.unable("missing parameter %s", p.Name)
		}
		if !sent {
			continue
		}
		value, keep, err := c.canonical(p, a)
		if err != nil {
			return "", err
		}
		if keep {
			query = append(query, url.QueryEscape(p.Name)+"="+value)
		}
	}
	return strings.Join(query, "&"), nil
}

// canonical returns the escaped canonical value of one parameter; keep is
// false if it counts as not sent.
func (c *command) canonical(p param, a argument) (value string, keep bool, err error) {
	if p.Type == "map" {
		if a.value != "" || a.fields == nil {
			return "", false, c.badValue(p, a.value)
		}
		value, err = mapValue(a.fields)
		return url.QueryEscape(value), true, err
	}
	if a.fields != nil {
		return "", false, c.badValue(p, fmt.Sprint(a.fields))
	}
	if a.value == "" && p.Required {
		return "", false, cks.Errorf(cks.Invalid, "Invalid value provided for API arg: %s", p.Name)
	}
	if a.value == "" && p.Type == "integer" {
		return "", false, nil
	}
	if p.Type == "list" {
		value, err = c.listValue(p, a.value)
		return value, true, err
	}
	value, err = syntax[p.Type](c, p, a.value)
	return url.QueryEscape(value), true, err
}

// mapValue is a map parameter as a JSON array, in the order of the indexes.
func mapValue(fields map[int]map[string]string) (string, error) {
	entries := make([]map[string]string, 0, len(fields))
	for _, i := range slices.Sorted(maps.Keys(fields)) {
		entries = append(entries, fields[i])
	}
	out, err := json.Marshal(entries)
	if err != nil {
		return "", fmt.Errorf("encode a map parameter: %w", err)
	}
	return string(out), nil
}

// listValue reads a comma-separated list. The commas between its elements are
// left bare, those within an element cannot be.
func (c *command) listValue(p param, s string) (string, error) {
	var tokens []string
	for token := range strings.SplitSeq(s, ",") {
		if p.ElementType == "uuid" {
			token = strings.TrimSpace(token)
		}
		if token == "" {
			continue
		}
		if len(tokens) == maxListItems {
			return "", cks.Errorf(cks.TooLarge, "The parameter %s has more than %d elements", p.Name, maxListItems)
		}
		value, err := syntax[p.ElementType](c, p, token)
		if err != nil {
			return "", err
		}
		tokens = append(tokens, url.QueryEscape(value))
	}
	return strings.Join(tokens, ","), nil
}

// syntax reads a value of each type (cks.md §1.3) and returns it in canonical
// form.
var syntax = map[string]func(c *command, p param, s string) (string, error){
	"boolean": func(_ *command, _ param, s string) (string, error) {
		return strconv.FormatBool(strings.EqualFold(s, "true")), nil
	},
	"long":    func(c *command, p param, s string) (string, error) { return c.number(p, s, 64) },
	"integer": func(c *command, p param, s string) (string, error) { return c.number(p, s, 32) },
	"string": func(c *command, p param, s string) (string, error) {
		if p.MaxLength > 0 && utf8.RuneCountInString(s) > p.MaxLength {
			return "", c.unable("invalid value. Value greater than max allowed length %d for param: %s", p.MaxLength, p.Name)
		}
		return s, nil
	},
	"uuid": func(_ *command, p param, s string) (string, error) {
		if uuidForm.MatchString(s) || s == "-1" {
			return s, nil
		}
		if _, err := strconv.ParseInt(s, 10, 64); err == nil && p.Since == "" {
			return s, nil // an internal number; parameters made since 4.2 take none
		}
		return "", cks.UnknownEntity(p.Name, clip(s, 300))
	},
	"date": func(c *command, p param, s string) (string, error) {
		t, ok := parseTime(s, dateLayouts)
		if _, day := parseTime(s, dayLayout); day && p.Name == "enddate" {
			t = t.Add(24*time.Hour - time.Second) // as in CloudStack, the whole day
		}
		if !ok {
			return "", cks.Errorf(cks.Parameter, "Unable to parse date %s for command %s, "+
				"please pass dates in the format mentioned in the api documentation", clip(s, 100), strings.ToLower(c.Name))
		}
		return t.UTC().Format(time.RFC3339Nano), nil
	},
}

var uuidForm = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// dateLayouts are the forms of a date parameter.
var dateLayouts = append(slices.Clone(expiryLayouts), "2006-01-02 15:04:05", dayLayout[0])

// dayLayout is the form of one without a time.
var dayLayout = []string{"2006-01-02"}

func (c *command) number(p param, s string, bits int) (string, error) {
	n, err := strconv.ParseInt(s, 10, bits)
	if err != nil {
		return "", c.badValue(p, s)
	}
	return strconv.FormatInt(n, 10), nil
}

func (c *command) has(name string) bool {
	return slices.ContainsFunc(c.Params, func(p param) bool { return p.Name == name })
}

// unable is the frame of most texts about parameters.
func (c *command) unable(format string, args ...any) error {
	return cks.Errorf(cks.Parameter, "Unable to execute API command %s due to %s",
		strings.ToLower(c.Name), fmt.Sprintf(format, args...))
}

func (c *command) badValue(p param, value string) error {
	return c.unable("invalid value %s for parameter %s", clip(value, 300), p.Name)
}

// checkTypes fails if the document has a parameter of a type that cannot be
// read.
func checkTypes(commands map[string]*command) error {
	for _, c := range commands {
		for _, p := range c.Params {
			kind := p.Type
			if kind == "list" {
				kind = p.ElementType
			}
			if _, ok := syntax[kind]; !ok && p.Type != "map" {
				return fmt.Errorf("API document: %s: parameter %s has the unknown type %q", c.Name, p.Name, kind)
			}
		}
	}
	return nil
}
