package http

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ckscale/internal/cks"
)

// sample has a parameter of each type.
var sample = &command{Name: "listSamples", Params: []param{
	{Name: "id", Type: "uuid", Required: true},
	{Name: "iso", Type: "uuid", Since: "4.21"},
	{Name: "size", Type: "long"},
	{Name: "name", Type: "string", MaxLength: 5},
	{Name: "listall", Type: "boolean"},
	{Name: "ids", Type: "list", ElementType: "uuid"},
	{Name: "tags", Type: "list", ElementType: "string"},
	{Name: "nodeofferings", Type: "map"},
	{Name: "startdate", Type: "date"},
	{Name: "enddate", Type: "date"},
	{Name: "page", Type: "integer"},
	{Name: "pagesize", Type: "integer"},
}}

const sampleUUID = "11111111-AAAA-3333-4444-55555555555f"

// cks.md §1.2-1.4: names in any case, values by type, the unknown left out.
//
// Keeps: §1.2/param-names, §1.2/map-fields, §1.2/unknown-parameters, §1.3/boolean, §1.3/blank-integer.
// Keeps: §1.3/uuid-number, §1.3/list, §1.3/list-untrimmed, §1.3/list-trimmed-ids, §1.3/date, §1.4/entries.
// Keeps: §1.4/name, §1.4/field.
func TestCanonicalQuery(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		sent []pair
		want string
	}{
		{params("ID", "7"), "id=7"},
		{params("id", "-1", "other", "x"), "id=-1"},
		{params("id", sampleUUID, "SiZe", "+5"), "id=" + sampleUUID + "&size=5"},
		{params("id", "7", "ID", "8"), "id=8"},
		{params("id", "7", "iso", "-1"), "id=7&iso=-1"},
		{params("id", "7", "listAll", "TRUE"), "id=7&listall=true"},
		{params("id", "7", "listall", "tRuE"), "id=7&listall=true"},
		{params("id", "7", "listall", "yes"), "id=7&listall=false"},
		{params("id", "7", "listall", "1"), "id=7&listall=false"},
		{params("id", "7", "listall", " true"), "id=7&listall=false"},
		{params("id", "7", "listall", ""), "id=7&listall=false"},
		{params("id", "7", "name", ""), "id=7&name="},
		{params("id", "7", "name", "ééééé"), "id=7&name=%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9"},
		{params("id", "7", "ids", " 1,, "+sampleUUID+" ,"), "id=7&ids=1," + sampleUUID},
		{params("id", "7", "ids", ""), "id=7&ids="},
		{params("id", "7", "ids", ","), "id=7&ids="},
		{params("id", "7", "tags", "a, b"), "id=7&tags=a,+b"},
		{params("id", "7", "nodeofferings[5].offering", "o", "NodeOfferings[1].node", "w", "nodeofferings[5].Node", "x"),
			"id=7&nodeofferings=%5B%7B%22node%22%3A%22w%22%7D%2C%7B%22Node%22%3A%22x%22%2C%22offering%22%3A%22o%22%7D%5D"},
		{params("id", "7", "nodeofferings[0].a.B.c", "o", "nodeofferings[0]x.node", "w", "nodeofferings[-1].node", "v"),
			"id=7&nodeofferings=%5B%7B%22node%22%3A%22v%22%7D%2C%7B%22a.B.c%22%3A%22o%22%2C%22node%22%3A%22w%22%7D%5D"},
		{params("id", "7", "startdate", "2026-01-08T08:10:00+0000"), "id=7&startdate=2026-01-08T08%3A10%3A00Z"},
		{params("id", "7", "startdate", "2026-01-08T08:10:00+01:00"), "id=7&startdate=2026-01-08T07%3A10%3A00Z"},
		{params("id", "7", "startdate", "2026-01-08 08:10:00"), "id=7&startdate=2026-01-08T08%3A10%3A00Z"},
		{params("id", "7", "startdate", "2026-01-08"), "id=7&startdate=2026-01-08T00%3A00%3A00Z"},
		{params("id", "7", "enddate", "2026-01-08"), "id=7&enddate=2026-01-08T23%3A59%3A59Z"}, // the whole day
		{params("id", "7", "enddate", "2026-01-08 00:00:00"), "id=7&enddate=2026-01-08T00%3A00%3A00Z"},
		{params("id", "7", "page", "0", "pagesize", "2"), "id=7&page=1&pagesize=2"},
		{params("id", "7", "page", "3", "pagesize", "500"), "id=7&page=3&pagesize=500"},
		{params("id", "7", "pagesize", "-1"), "id=7&pagesize=-1"},
		{params("id", "7", "page", "", "pagesize", ""), "id=7"},
	} {
		got, err := sample.canonicalQuery(c.sent)
		if err != nil || got != c.want {
			t.Errorf("%v: got %s, %v, want %s", c.sent, got, err, c.want)
		}
	}
}

// The texts of cks.md §1.3, §2.6 and §2.9, and A14, A23.
//
// Keeps: §1.3/number, §1.3/empty-long, §1.3/string-length, §1.3/uuid-number-since, §1.3/required-empty.
// Keeps: §1.3/list-elements, §1.3/date-bad, §1.3/command-in-texts, §1.4/malformed, §1.4/bare.
// Keeps: §2.6/page-pair.
// Keeps: A12, A23.
func TestCanonicalQueryRefuses(t *testing.T) {
	t.Parallel()
	const due = "Unable to execute API command listsamples due to "
	for _, c := range []struct {
		sent []pair
		code cks.Code
		text string
	}{
		{nil, cks.Parameter, due + "missing parameter id"},
		{params("id", ""), cks.Invalid, "Invalid value provided for API arg: id"},
		{params("id", "x"), cks.UnknownID, cks.UnknownEntity("id", "x").Message},
		{params("id", "99999999999999999999"), cks.UnknownID, cks.UnknownEntity("id", "99999999999999999999").Message},
		{params("id", "1111111122223333444455555555555f"), cks.UnknownID,
			cks.UnknownEntity("id", "1111111122223333444455555555555f").Message},
		{params("id", "7", "iso", "7"), cks.UnknownID, cks.UnknownEntity("iso", "7").Message},
		{params("id", "7", "ids", "1,x"), cks.UnknownID, cks.UnknownEntity("ids", "x").Message},
		{params("id", "7", "ids", strings.Repeat("1,", 1001)), cks.TooLarge, "The parameter ids has more than 1000 elements"},
		{params("id", "7", "size", "abc"), cks.Parameter, due + "invalid value abc for parameter size"},
		{params("id", "7", "size", "1.5"), cks.Parameter, due + "invalid value 1.5 for parameter size"},
		{params("id", "7", "size", "1_0"), cks.Parameter, due + "invalid value 1_0 for parameter size"},
		{params("id", "7", "size", ""), cks.Parameter, due + "invalid value  for parameter size"},
		{params("id", "7", "size", "99999999999999999999"), cks.Parameter,
			due + "invalid value 99999999999999999999 for parameter size"},
		{params("id", "7", "size[0].x", "1"), cks.Parameter, due + "invalid value map[0:map[x:1]] for parameter size"},
		{params("id", "7", "name", "éééééé"), cks.Parameter,
			due + "invalid value. Value greater than max allowed length 5 for param: name"},
		{params("id", "7", "nodeofferings", "abc"), cks.Parameter, due + "invalid value abc for parameter nodeofferings"},
		{params("id", "7", "nodeofferings", "abc", "nodeofferings[0].node", "w"), cks.Parameter,
			due + "invalid value abc for parameter nodeofferings"},
		{params("id", "7", "startdate", "soon"), cks.Parameter,
			"Unable to parse date soon for command listsamples, please pass dates in the format mentioned in the api documentation"},
		{params("id", "7", "page", "1"), cks.Parameter, `"pagesize" parameter is required when "page" is specified`},
		{params("id", "7", "pagesize", "10"), cks.Parameter, `"page" parameter is required when "pagesize" is specified`},
		{params("id", "7", "page", "1", "pagesize", "-1"), cks.Invalid,
			"Can't specify page parameter when pagesize is -1 (Unlimited)"},
		{params("id", "7", "page", "1", "pagesize", "501"), cks.Invalid, "Page size can't exceed max allowed page size value: 500"},
		{params("id", "7", "page", "-1", "pagesize", "2"), cks.Parameter, due + "invalid value -1 for parameter page"},
		{params("id", "7", "page", "1", "pagesize", "-2"), cks.Parameter, due + "invalid value -2 for parameter pagesize"},
		{params("id", "7", "page", "3000000000", "pagesize", "2"), cks.Parameter, due + "invalid value 3000000000 for parameter page"},
		{params("a[0]", "x"), cks.Malformed, malformed("a[0]")},
		{params("a[x].b", "x"), cks.Malformed, malformed("a[x].b")},
		{params("a[0][1].b", "x"), cks.Malformed, malformed("a[0][1].b")},
		{params("a[0]].b", "x"), cks.Malformed, malformed("a[0]].b")},
		{params("a]0[.b", "x"), cks.Malformed, malformed("a]0[.b")},
		{params("a.b[0]", "x"), cks.Malformed, malformed("a.b[0]")},
		{params("a[0.1]b", "x"), cks.Malformed, malformed("a[0.1]b")},
		{params("a[99999999999].b", "x"), cks.Malformed, malformed("a[99999999999].b")},
	} {
		_, err := sample.canonicalQuery(c.sent)
		if err == nil || cks.CodeOf(err) != c.code || err.Error() != c.text {
			t.Errorf("%v: got %v %v\nwant %v %v", c.sent, cks.CodeOf(err), err, c.code, c.text)
		}
	}
}

// cks.md §2.6: this command finds a wrong page size inside its service call.
//
// Keeps: §2.6/page-pair, §2.6/page-size, §2.6/service-errors.
func TestListKubernetesClustersRefusesPagesAsFailed(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.do(t, get(signedQuery("command", "listKubernetesClusters", "page", "1", "pagesize", "501"))).
		want(t, 530, listKey, 4250, "Page size can't exceed max allowed page size value: 500")
	l.do(t, get(signedQuery("command", "listKubernetesClusters", "page", "1"))).
		want(t, 431, listKey, 9999, `"pagesize" parameter is required when "page" is specified`)
	l.do(t, get(signedQuery("command", "listVirtualMachines", "page", "1", "pagesize", "501"))).
		want(t, 431, "listvirtualmachinesresponse", 4350, "Page size can't exceed max allowed page size value: 500")
}

// A document that the decoder cannot follow stops the server from starting.
func TestUnknownTypeIsFoundAtTheStart(t *testing.T) {
	t.Parallel()
	for _, p := range []param{{Name: "x", Type: "float"}, {Name: "x", Type: "list", ElementType: "map"}} {
		if err := checkTypes(map[string]*command{"c": {Name: "c", Params: []param{p}}}); err == nil {
			t.Errorf("%v is accepted", p)
		}
	}
	if err := checkTypes(map[string]*command{"c": sample}); err != nil {
		t.Error(err)
	}
}

// Folding loses no value, whatever the names look like.
func FuzzFoldMap(f *testing.F) {
	f.Add("nodeofferings[0].node", "worker")
	f.Add("a]0[.b", "x")
	f.Add("[0].x", "")
	f.Fuzz(func(t *testing.T, name, value string) {
		args, err := foldMap(params(name, value))
		if err != nil {
			if cks.CodeOf(err) != cks.Malformed {
				t.Fatal(err)
			}
			return
		}
		if len(args) != 1 {
			t.Fatalf("%q folds into %v", name, args)
		}
		for folded, a := range args {
			if folded != strings.ToLower(folded) {
				t.Errorf("%q is not in lower case", folded)
			}
			if a.fields == nil {
				if a.value != value {
					t.Errorf("value %q became %q", value, a.value)
				}
				continue
			}
			for _, fields := range a.fields {
				for _, v := range fields {
					if diff := cmp.Diff(value, v); diff != "" {
						t.Error(diff)
					}
				}
			}
		}
	})
}
