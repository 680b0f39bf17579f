package wrap

import (
	"errors"
	"io/fs"
	"testing"
)

func TestError(t *testing.T) {
	if err := Error(nil, "cannot read %q", "f"); err != nil {
		t.Errorf("nothing is wrong, but there is the error %v", err)
	}
	err := Error(fs.ErrNotExist, "cannot read 100%% of %q", "f")
	if err.Error() != `cannot read 100% of "f": file does not exist` || !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestResult(t *testing.T) {
	read := func(name string, failure error) (err error) {
		defer Result(&err, "cannot read %q", name)
		return failure
	}
	if err := read("f", nil); err != nil {
		t.Error(err)
	}
	if err := read("f", fs.ErrNotExist); err.Error() != `cannot read "f": file does not exist` {
		t.Error(err)
	}
}

func TestUnless(t *testing.T) {
	missing := Error(fs.ErrNotExist, "cannot read %q", "f")
	if err := errors.Join(Unless(nil, fs.ErrNotExist), Unless(missing, fs.ErrNotExist)); err != nil {
		t.Error(err)
	}
	if err := Unless(missing, fs.ErrExist); err != missing {
		t.Errorf("another error became %v", err)
	}
}
