package carry

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

type inner struct {
	A string `json:"a,omitempty"`
}

type named struct {
	N int    `json:"n"`
	V string `json:"v,omitempty"`
}

func (n named) Identity() any { return n.N }

type embedded struct {
	E int `json:"e,omitempty"`
}

// own is a type with its own JSON encoding.
type own struct{ text string }

func (o own) MarshalJSON() ([]byte, error)     { return json.Marshal(map[string]string{"text": o.text}) }
func (o *own) UnmarshalJSON(data []byte) error { return nil }

type record struct {
	embedded
	Name    string           `json:"name"`
	Gone    string           `json:"gone,omitempty"`
	Inner   inner            `json:"inner,omitzero"`
	Pointer *inner           `json:"pointer,omitempty"`
	Map     map[string]inner `json:"map,omitempty"`
	List    []inner          `json:"list,omitempty"`
	Named   []named          `json:"named,omitempty"`
	One     *named           `json:"one,omitempty"`
	Any     any              `json:"any,omitempty"`
	Own     *own             `json:"own,omitempty"`
	Time    time.Time        `json:"time,omitzero"`
	Plain   int
	Hidden  string `json:"-"`
}

func TestOver(t *testing.T) {
	for _, c := range []struct {
		name string
		old  string
		doc  any
		want string
	}{
		{"nothing was there", ``, record{Name: "x"}, `{"name":"x","Plain":0}`},
		{"all is known", `{"name":"old","Plain":7}`, record{Name: "x"}, `{"name":"x","Plain":0}`},
		{"a member", `{"future":{"a":[1,2]},"name":"old"}`, record{Name: "x"}, `{"name":"x","Plain":0,"future":{"a":[1,2]}}`},
		{"a member of what embeds", `{"e":1,"f":2}`, record{embedded: embedded{E: 3}}, `{"e":3,"name":"","Plain":0,"f":2}`},
		{"a pointer to a record", `{"name":"old","f":1}`, &record{Name: "x"}, `{"name":"x","Plain":0,"f":1}`},
		{"numbers, texts and order stay as they are", `{"f":1.50,"name":"a","g":12345678901234567890,"h":"<\u00e9>"}`, record{Name: "x"},
			`{"name":"x","Plain":0,"f":1.50,"g":12345678901234567890,"h":"<\u00e9>"}`},
		{"the program takes a known one away", `{"name":"old","gone":"y","f":1}`, record{Name: "x"}, `{"name":"x","Plain":0,"f":1}`},
		{"known whatever its case", `{"NAME":"old","plain":1,"f":1}`, record{Name: "x"}, `{"name":"x","Plain":0,"f":1}`},
		{"one that only the program has is not known", `{"Hidden":"y"}`, record{Name: "x"}, `{"name":"x","Plain":0,"Hidden":"y"}`},
		{"in a struct", `{"inner":{"a":"1","f":1}}`, record{Inner: inner{"2"}}, `{"name":"","inner":{"a":"2","f":1},"Plain":0}`},
		{"in a struct that is zero", `{"inner":{"a":"1","f":1},"g":2}`, record{}, `{"name":"","Plain":0,"inner":{"f":1},"g":2}`},
		{"in a struct that is zero and has no more", `{"inner":{"a":"1"},"g":2}`, record{}, `{"name":"","Plain":0,"g":2}`},
		{"behind a pointer that is nil", `{"pointer":{"a":"1","f":1},"g":2}`, record{}, `{"name":"","Plain":0,"g":2}`},
		{"behind a pointer", `{"pointer":{"a":"1","f":1}}`, record{Pointer: &inner{"2"}}, `{"name":"","pointer":{"a":"2","f":1},"Plain":0}`},
		{"in maps by key", `{"map":{"k":{"a":"1","f":1},"l":{"f":2}}}`, record{Map: map[string]inner{"k": {"2"}, "m": {"3"}}},
			`{"name":"","map":{"k":{"a":"2","f":1},"m":{"a":"3"}},"Plain":0}`},
		{"in lists by what is known", `{"list":[{"a":"1","f":1},{"a":"2","f":2},{"a":"2","f":3}]}`, record{List: []inner{{"0"}, {"2"}, {"2"}, {"1"}}},
			`{"name":"","list":[{"a":"0"},{"a":"2","f":2},{"a":"2","f":3},{"a":"1","f":1}],"Plain":0}`},
		{"in lists by identity", `{"named":[{"n":1,"v":"a","f":1},{"n":2,"f":2}]}`, record{Named: []named{{2, "b"}, {1, "c"}, {3, ""}}},
			`{"name":"","named":[{"n":2,"v":"b","f":2},{"n":1,"v":"c","f":1},{"n":3}],"Plain":0}`},
		{"the same one", `{"one":{"n":1,"v":"a","f":1}}`, record{One: &named{1, "b"}}, `{"name":"","one":{"n":1,"v":"b","f":1},"Plain":0}`},
		{"another one", `{"one":{"n":1,"f":1},"g":1}`, record{One: &named{2, ""}}, `{"name":"","one":{"n":2},"Plain":0,"g":1}`},
		{"another record", `{"n":1,"f":1}`, named{N: 2}, `{"n":2}`},
		{"the same record", `{"n":1,"f":1}`, named{N: 1}, `{"n":1,"f":1}`},
		{"of type any it is the program's", `{"any":{"f":1},"g":1}`, record{Any: map[string]int{"x": 1}}, `{"name":"","any":{"x":1},"Plain":0,"g":1}`},
		{"JSON of its own making", `{"own":{"text":"a","f":1},"g":1}`, record{Own: &own{"b"}}, `{"name":"","own":{"text":"b"},"Plain":0,"g":1}`},
		{"time is JSON of its own making", `{"time":"2020-01-01T00:00:00Z","g":1}`, record{Time: time.Unix(0, 0).UTC()}, `{"name":"","time":"1970-01-01T00:00:00Z","Plain":0,"g":1}`},
		{"a list of records", `[{"a":"1","f":1},{"a":"2"}]`, []inner{{"1"}}, `[{"a":"1","f":1}]`},
		{"a map of records", `{"k":{"a":"1","f":1}}`, map[string]inner{"k": {"2"}}, `{"k":{"a":"2","f":1}}`},
		{"a record without members", `{"f":1}`, struct{}{}, `{"f":1}`},
		{"a number", `{"f":1}`, 3, `3`},
		{"texts", `["a"]`, []string{"b"}, `["b"]`},
		{"a map of texts is the program's", `{"a":"b"}`, map[string]string{"c": "d"}, `{"c":"d"}`},
		{"the old one is no object", `[1]`, record{Name: "x"}, `{"name":"x","Plain":0}`},
		{"the old one is no JSON", `{"f":`, record{Name: "x"}, `{"name":"x","Plain":0}`},
		{"null", `null`, record{Name: "x"}, `{"name":"x","Plain":0}`},
		{"nothing takes its place", `{"f":1}`, nil, `null`},
		{"a nil pointer takes its place", `{"f":1}`, (*record)(nil), `null`},
		{"a known one of another kind", `{"inner":[1],"f":1}`, record{Inner: inner{"2"}}, `{"name":"","inner":{"a":"2"},"Plain":0,"f":1}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := string(Over([]byte(c.old), encode(c.doc), c.doc))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if again := string(Over([]byte(got), encode(c.doc), c.doc)); again != got {
				t.Errorf("a second time it is %s", again)
			}
		})
	}
}

type (
	deep   struct{ Same inner }
	middle struct{ deep }
	near   struct{ Same named }
	nested struct {
		middle
		near
	}
)

// TestAddFieldsTakesTheShallowest checks that a field hides one of a deeper level, as in encoding/json, even if the
// deeper one comes first.
func TestAddFieldsTakesTheShallowest(t *testing.T) {
	fields := map[string]reflect.Type{}
	addFields(fields, reflect.TypeFor[nested]())
	if got, want := fields["same"], reflect.TypeFor[named](); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestSame(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{`{"a":1,"b":2}`, `{"a":1,"b":2}`, true},
		{`{"a":1,"b":2}`, `{"b":2,"a":1}`, true},
		{`{"a":1,"b":2}`, `{"a":2,"b":1}`, false},
		{`{"a":{"x":1,"y":[{"p":1,"q":2}]}}`, `{"a":{"y":[{"q":2,"p":1}],"x":1}}`, true},
		{`[1,2]`, `[2,1]`, false},
		{`{"a":12345678901234567891}`, `{"a":12345678901234567981}`, false},
		{`{"a"`, `"a"{`, false},
		{`1`, `2`, false},
		{`{}`, `{"a":1}`, false},
	} {
		if got := Same([]byte(c.a), []byte(c.b)); got != c.want {
			t.Errorf("%s and %s: got %t", c.a, c.b, got)
		}
	}
}

// FuzzOver checks that the program's values replace the stored ones, even if the stored text is invalid.
func FuzzOver(f *testing.F) {
	f.Add(`{"name":"a","f":{"g":1},"list":[{"a":"1","h":2}]}`, "b")
	f.Add(`{"named":[{"n":1},{"n":"x"}],"one":null}`, "")
	f.Fuzz(func(t *testing.T, old, name string) {
		doc := record{Name: name, List: []inner{{"1"}}, Named: []named{{1, "v"}}, Map: map[string]inner{name: {}}}
		next := encode(doc)
		var want, got record
		if err := json.Unmarshal(next, &want); err != nil {
			t.Skip()
		}
		if err := json.Unmarshal(Over([]byte(old), next, doc), &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(record{}, own{})); diff != "" {
			t.Error(diff)
		}
	})
}

func BenchmarkAllKnown(b *testing.B) {
	doc := record{Name: "x", Inner: inner{"a"}, Map: map[string]inner{"a": {"b"}}, List: []inner{{"a"}, {"b"}}, Time: time.Now()}
	old := encode(doc)
	doc.Name = "y"
	next := encode(doc)
	for b.Loop() {
		Over(old, next, doc)
	}
}

func BenchmarkDecode(b *testing.B) {
	doc := record{Name: "x", Inner: inner{"a"}, Map: map[string]inner{"a": {"b"}}, List: []inner{{"a"}, {"b"}}, Time: time.Now()}
	old := encode(doc)
	for b.Loop() {
		if err := json.Unmarshal(old, new(record)); err != nil {
			b.Fatal(err)
		}
	}
}
