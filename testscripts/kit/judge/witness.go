package judge

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// witnessState is a variable that makes a test binary a witness of the state at the URL in it.
const witnessState = "WITNESS_STATE"

// IsWitness reports whether the command of WitnessLine runs this test binary.
func IsWitness() bool { return os.Getenv(witnessState) != "" }

// Witness is a test that runs on a host that can reach the state. It prints what the records in a
// directory lack compared with the state.
func Witness(t *testing.T) {
	if !IsWitness() {
		t.Skip("it is for a host of another test")
	}
	records, err := ReadAll(filepath.Join(os.Getenv("WITNESS_RECORDS"), "*"))
	if err != nil {
		t.Fatal(err)
	}
	lack, err := MissingFrom(t.Context(), os.Getenv(witnessState), records)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("witness: %q\n", strings.Join(lack, "; "))
}

// NothingMissing is the output of WitnessLine's command if nothing is missing.
const NothingMissing = "witness: \"\"\n"

// WitnessLine returns a shell command that calls TestWitness of the given test binary.
func WitnessLine(binary, url, folder string) string {
	return fmt.Sprintf("%s='%s' WITNESS_RECORDS=%s %s -test.run='^TestWitness$' | grep witness:", witnessState, url, folder, binary)
}
