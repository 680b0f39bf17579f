package judge

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Witness is a test that is called on a host, where the state can be reached: it prints
// what the records in a folder lack of what the state knows.
func Witness(t *testing.T) {
	url := os.Getenv("WITNESS_STATE")
	if url == "" {
		t.Skip("it is for a host of another test")
	}
	records, err := ReadAll(filepath.Join(os.Getenv("WITNESS_RECORDS"), "*"))
	if err != nil {
		t.Fatal(err)
	}
	lack, err := MissingFrom(t.Context(), url, records)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("witness: %q\n", strings.Join(lack, "; "))
}

// NothingMissing is what WitnessLine's line prints in the end.
const NothingMissing = "witness: \"\"\n"

// WitnessLine is a shell's line that has TestWitness of that test's binary called.
func WitnessLine(binary, url, folder string) string {
	return fmt.Sprintf("WITNESS_STATE='%s' WITNESS_RECORDS=%s %s -test.run='^TestWitness$' | grep witness:", url, folder, binary)
}
