package number

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"
)

func TestUnmarshal(t *testing.T) {
	var doc struct {
		Values map[string]any `json:"values"`
		Count  int            `json:"count"`
	}
	in := `{"values":{"i":5242880,"l":[9007199254740993,1.10],"d":{"x":1e3}},"count":3}`
	if err := Unmarshal([]byte(in), &doc); err != nil {
		t.Fatal(err)
	}

	out, err := json.Marshal(doc)
	want := `{"values":{"d":{"x":1e3},"i":5242880,"l":[9007199254740993,1.10]},"count":3}`
	if diff := cmp.Diff(want, string(out)); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestUnmarshalRefuses(t *testing.T) {
	for _, in := range []string{"", "{", `{"a":1`, "1 2", "{} x", "[1,]"} {
		t.Run(in, func(t *testing.T) {
			var value any
			if err := Unmarshal([]byte(in), &value); err == nil {
				t.Errorf("it was taken as %v", value)
			}
		})
	}
}

func parse(t *testing.T, text string) (any, error) {
	t.Helper()
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	return FromYAML(&doc)
}

func TestFromYAML(t *testing.T) {
	for _, tc := range []struct {
		in   string
		want any
	}{
		{"5242880", json.Number("5242880")},
		{"9223372036854775807", json.Number("9223372036854775807")},
		{"123456789012345678901234567890", json.Number("123456789012345678901234567890")},
		{"-1.10", json.Number("-1.10")},
		{"1e3", json.Number("1e3")},
		{"+5", json.Number("5")},
		{"1_000", json.Number("1000")},
		{"0x1f", json.Number("31")},
		{"0o17", json.Number("15")},
		{"0777", json.Number("511")},
		{".5", json.Number("0.5")},
		{"!!float 5", json.Number("5")},
		{"!!str 5", "5"},
		{"'5'", "5"},
		{"1.10.0", "1.10.0"},
		{"2024-01-31", "2024-01-31"},
		{"~", nil},
		{"true", true},
		{"!!binary aGk=", "hi"},
		{"[1, {a: 2.0}]", []any{json.Number("1"), map[string]any{"a": json.Number("2.0")}}},
		{"a: &a {x: 1}\nb: *a\nc: {<<: *a, y: 2}", map[string]any{
			"a": map[string]any{"x": json.Number("1")},
			"b": map[string]any{"x": json.Number("1")},
			"c": map[string]any{"x": json.Number("1"), "y": json.Number("2")},
		}},
	} {
		t.Run(tc.in, func(t *testing.T) {
			got, err := parse(t, tc.in)
			if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestFromYAMLRefuses(t *testing.T) {
	laughs := "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1]\n"
	for i := range 8 {
		old, next := string(rune('0'+i)), string(rune('1'+i))
		laughs += "a" + next + ": &a" + next + " [" + strings.Repeat("*a"+old+", ", 9) + "]\n"
	}

	for _, tc := range []struct {
		in      string
		notJSON bool
	}{
		{".nan", true}, {"[-.inf]", true}, {"{1: a}", true}, {"{[a]: b}", true}, {"!!binary /w==", true},
		{laughs, false}, {"a: &a [*a]", false},
	} {
		t.Run(tc.in[:min(len(tc.in), 20)], func(t *testing.T) {
			value, err := parse(t, tc.in)
			if err == nil || errors.Is(err, ErrNotJSON) != tc.notJSON {
				t.Errorf("got %v, error %v", value, err)
			}
		})
	}
}

func TestCompare(t *testing.T) {
	for _, tc := range []struct {
		a, b json.Number
		want int
	}{
		{"9007199254740993", "9007199254740992", 1},
		{"9007199254740993.0", "9007199254740992", 1},
		{"3", "3.0", 0},
		{"1e3", "1000", 0},
		{"-1", "1", -1},
		{"0.1", "0.10000000000000000001", -1},
		{"1e-999999999", "0", 0},
		{"1e400", "1e308", 1},
	} {
		t.Run(string(tc.a+" "+tc.b), func(t *testing.T) {
			if got := Compare(tc.a, tc.b); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

func TestWhole(t *testing.T) {
	for in, want := range map[json.Number]json.Number{
		"3": "3", "3.0": "3", "1e3": "1000", "-0": "0", "9007199254740993": "9007199254740993",
		"1.5": "", "1e-999999999": "0",
	} {
		t.Run(string(in), func(t *testing.T) {
			got, ok := Whole(in)
			if ok != (want != "") || ok && got != want {
				t.Errorf("got %s, %t", got, ok)
			}
		})
	}
}

func TestForPrinting(t *testing.T) {
	in := map[string]any{"a": json.Number("5"), "b": []any{json.Number("1.10"), "5"}}
	asYAML, err := yaml.Marshal(ForPrinting(in))
	if want := "a: 5\nb:\n    - 1.10\n    - \"5\"\n"; err != nil || string(asYAML) != want {
		t.Errorf("%v\n%s", err, asYAML)
	}
	asJSON, err := json.Marshal(ForPrinting(in))
	if want := `{"a":5,"b":[1.10,"5"]}`; err != nil || string(asJSON) != want {
		t.Errorf("%v\n%s", err, asJSON)
	}
}
