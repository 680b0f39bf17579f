package charm

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOptionKeepsItsTypeInJSON(t *testing.T) {
	for _, want := range []Option{
		{Type: Int, Default: int64(8080)},
		{Type: Int, Default: int64(1)<<62 + 1},
		{Type: Float, Default: 2.0},
		{Type: Float, Default: 0.1},
		{Type: String, Default: "80"},
		{Type: Boolean, Default: false},
		{Type: Int},
	} {
		data, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got Option
		if err := json.Unmarshal(data, &got); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", data, diff)
		}
	}
}
