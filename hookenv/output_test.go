package hookenv

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRender(t *testing.T) {
	dictionary := map[string]any{"s": "it's", "n": int64(7), "f": 45.0, "b": true, "none": nil, "d": map[string]any{"k": "<v>"}}
	for _, tt := range []struct {
		name  string
		value any
		want  map[string]string
	}{
		{"nothing", nil, map[string]string{"smart": "", "json": "null\n", "yaml": "", "shell": ""}},
		{"an empty string", "", map[string]string{"smart": "", "json": "\"\"\n", "yaml": "\"\"\n", "shell": ""}},
		{"a string", "a&b", map[string]string{"smart": "a&b\n", "json": "\"a\\u0026b\"\n", "yaml": "a&b\n", "shell": "a&b\n"}},
		{"several lines", "a\nb\n", map[string]string{"smart": "a\nb\n\n", "json": "\"a\\nb\\n\"\n", "yaml": "|\n  a\n  b\n"}},
		{"an empty first line", map[string]string{"k": "\na"}, map[string]string{"yaml": "k: \"\\na\"\n"}},
		{"turned text", map[string]string{"k\u200e": "a\u202eb\n\u2066"}, map[string]string{"yaml": "\"k\\u200E\": \"a\\u202Eb\\n\\u2066\"\n"}},
		{"tabs in lines", map[string]string{"k": "a\tb\n"}, map[string]string{"yaml": "k: \"a\\tb\\n\"\n"}},
		{"empty last lines", map[string]string{"k": "a\n\n"}, map[string]string{"yaml": "k: |+\n  a\n\n"}},
		{"texts like other things", map[string]string{"0": "0x10", "1": "~", "2": "2001-01-01", "3": "a: b", "4": " a", "5": "#", "6": "é", "7": "1:20", "8": "on", "9": "- a"}, map[string]string{
			"yaml": "\"0\": \"0x10\"\n\"1\": \"~\"\n\"2\": \"2001-01-01\"\n\"3\": 'a: b'\n\"4\": ' a'\n\"5\": '#'\n\"6\": é\n\"7\": \"1:20\"\n\"8\": \"on\"\n\"9\": '- a'\n",
			"json": `{"0":"0x10","1":"~","2":"2001-01-01","3":"a: b","4":" a","5":"#","6":"é","7":"1:20","8":"on","9":"- a"}` + "\n",
		}},
		{"a list", []string{"b", "a"}, map[string]string{"smart": "b\na\n", "json": "[\"b\",\"a\"]\n", "yaml": "- b\n- a\n", "shell": "b\na\n"}},
		{"an empty list", []string{}, map[string]string{"smart": "", "json": "[]\n", "yaml": "[]\n", "shell": ""}},
		{"yes", true, map[string]string{"smart": "True\n", "json": "true\n", "yaml": "true\n", "shell": "True\n"}},
		{"no", false, map[string]string{"smart": "False\n", "json": "false\n", "yaml": "false\n", "shell": "False\n"}},
		{"a number", int64(1000000), map[string]string{"smart": "1000000\n", "json": "1000000\n", "yaml": "1000000\n", "shell": "1000000\n"}},
		{"a fraction", 0.5, map[string]string{"smart": "0.5\n", "json": "0.5\n", "yaml": "0.5\n", "shell": "0.5\n"}},
		{"a float of classic charms", pythonFloat(-1), map[string]string{"smart": "-1.0\n", "json": "-1.0\n", "yaml": "-1.0\n", "shell": "-1.0\n"}},
		{"a small one", pythonFloat(2.5e-7), map[string]string{"smart": "2.5e-07\n", "json": "2.5e-07\n", "shell": "2.5e-07\n"}},
		{"a large one", pythonFloat(123456789.5), map[string]string{"smart": "123456789.5\n", "json": "123456789.5\n", "shell": "123456789.5\n"}},
		{"floats of classic charms", (&Invocation{}).ConvertFloats(map[string]any{"f": 45.0, "n": int64(7)}), map[string]string{
			"smart": "f: 45.0\n\"n\": 7\n", "json": `{"f":45.0,"n":7}` + "\n", "shell": "VAR_f='45.0'\nVAR_n='7'\n",
		}},
		{"a dictionary", dictionary, map[string]string{
			"smart": "b: true\nd:\n  k: <v>\nf: 45\n\"n\": 7\nnone: null\ns: it's\n",
			"json":  `{"b":true,"d":{"k":"\u003cv\u003e"},"f":45,"n":7,"none":null,"s":"it's"}` + "\n",
			"shell": "VAR_b='True'\nVAR_d='{\"k\":\"\\u003cv\\u003e\"}'\nVAR_f='45'\nVAR_n='7'\nVAR_none=''\nVAR_s='it'\\''s'\n",
		}},
		{"hostile keys", map[string]string{"$(reboot)": "x", "1st": "y", "": "z", "PATH": "/evil", "a b": "c"}, map[string]string{
			"shell": "VAR_='z'\nVAR___reboot_='x'\nVAR_1st='y'\nVAR_PATH='/evil'\nVAR_a_b='c'\n",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for format, want := range tt.want {
				got, err := renderValue(format, tt.value)
				if diff := cmp.Diff(want, string(got)); err != nil || diff != "" {
					t.Errorf("%s as %s: %v (-want +got):\n%s", tt.name, format, err, diff)
				}
			}
		})
	}
}

func TestKeysThatFallTogetherInAShell(t *testing.T) {
	got, err := renderValue(formatShell, map[string]string{"a-b": "1", "a.b": "2", "c": "3"})
	want := `cannot print keys "a-b" and "a.b" for a shell: both would become the variable VAR_a_b; use another format`
	if got != nil || err == nil || err.Error() != want {
		t.Errorf("%q, %v", got, err)
	}
}
