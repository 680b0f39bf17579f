package applets

import (
	"os"
	"strings"
	"testing"
)

func TestParseFault(t *testing.T) {
	tests := []struct {
		value   string
		reached []string
		dies    int // after how many points it kills; 0 for never
	}{
		{"after-exit", []string{"before-spawn", "after-exit"}, 2},
		{"after-exit:1", []string{"after-exit"}, 1},
		{"after-exit:3", []string{"after-exit", "x", "after-exit", "after-exit", "after-exit"}, 4},
		{"after-exit:2", []string{"after-exit"}, 0},
	}
	for _, tt := range tests {
		died, n := 0, 0
		at, err := parseFault(tt.value, func() { died = n })
		if err != nil {
			t.Fatal(err)
		}
		for _, point := range tt.reached {
			n++
			at(point)
		}
		if died != tt.dies {
			t.Errorf("%s after %v died at %d, want %d", tt.value, tt.reached, died, tt.dies)
		}
	}
}

func TestParseFaultRefusesNonsense(t *testing.T) {
	for _, value := range []string{"x:0", "x:-1", "x:", "x:y"} {
		if _, err := parseFault(value, nil); err == nil {
			t.Errorf("BIJOU_FAULT=%q was accepted", value)
		}
	}
}

// TestFaultIsOffForUsers checks that the product's main sets no fault, whatever the variable contains.
func TestFaultIsOffForUsers(t *testing.T) {
	main, err := os.ReadFile("../../../main.go")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(main), "multicall.Main(os.Args, multicall.Options{})") {
		t.Error("main gives options that are for tests only")
	}
	if Fault() != nil {
		t.Error("there is a fault without the variable")
	}
	t.Setenv("BIJOU_FAULT", "before-spawn:1")
	if Fault() == nil {
		t.Error("there is no fault with the variable")
	}
}
