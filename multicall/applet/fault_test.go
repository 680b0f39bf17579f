package applet

import "testing"

func TestParseFault(t *testing.T) {
	tests := []struct {
		value   string
		reached []string
		dies    int // when this many points were reached; 0: never
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

func TestFaultIsOffForUsers(t *testing.T) {
	t.Setenv("BIJOU_FAULT", "before-spawn:1")
	if f, err := NewFault(false); f != nil || err != nil {
		t.Errorf("fault %v, error %v where it is not enabled", f != nil, err)
	}
	if f, err := NewFault(true); f == nil || err != nil {
		t.Errorf("fault %v, error %v where it is", f != nil, err)
	}
}
