package charm

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNames(t *testing.T) {
	long := strings.Repeat("a", maxName)
	for _, c := range []struct {
		what      string
		check     func(string) error
		good, bad []string
	}{
		{"charm", CheckName, []string{"mysql", "my-blog", "a", "cs2-b3", long},
			[]string{"", "Mysql", "mysql-2", "-a", "a-", "a--b", "a_b", "1a", "a/b", "a b", "a\n", "..", long + "a", "müller"}},
		{"application", CheckService, []string{"mysql", "blog-0", "a-0-b"}, []string{"", "blog-", "0", "Blog", "blog/0", "a\x00", long + "a"}},
		{"relation", CheckRelation, []string{"db", "shared-db", "db_admin", "ring", "relation-x"}, []string{"", "relation-7", "Db", "db-", "db--x", "a/b", "0"}},
		{"interface", CheckInterface, []string{"mysql", "http", "rec-ring", "ceph_client", "a.b", "X", "_mysql_router", "_"}, []string{"", "-", "a ", "a/b", ".a", "a\n"}},
		{"series", CheckSeries, []string{"precise", "win2012r2", "centos7"}, []string{"", "Precise", "../x", "a/b"}},
	} {
		t.Run(c.what, func(t *testing.T) {
			for _, name := range c.good {
				if err := c.check(name); err != nil {
					t.Errorf("%s %q: %v", c.what, name, err)
				}
			}
			for _, name := range c.bad {
				if err := c.check(name); err == nil || !strings.Contains(err.Error(), c.what+" name") {
					t.Errorf("%s %q: error %v, want one that says so", c.what, name, err)
				}
			}
		})
	}
}

func TestUnitNames(t *testing.T) {
	for _, name := range []string{"mysql/0", "blog-0/12", "a/2147483647"} {
		service, n, err := ParseUnit(name)
		if err != nil || UnitName(service, n) != name {
			t.Errorf("%q became %q, %d, %v", name, service, n, err)
		}
		if back, err := ParseUnitTag(UnitTag(name)); back != name || err != nil {
			t.Errorf("tag of %q became %q, %v", name, back, err)
		}
	}
	for _, name := range []string{"", "mysql", "mysql/", "/0", "mysql/00", "mysql/01", "mysql/-1", "mysql/+1", "mysql/1/2", "mysql/x", "mysql/2147483648",
		"mysql/99999999999999999999", "Mysql/0", "mysql/ 1", "mysql/١"} {
		if IsUnit(name) {
			t.Errorf("%q passed for a unit's name", name)
		}
	}
	for _, tag := range []string{"", "unit-", "unit-0", "mysql-0", "unit-mysql", "unit-mysql-01", "unit-mysql/0"} {
		if name, err := ParseUnitTag(tag); err == nil {
			t.Errorf("tag %q became %q", tag, name)
		}
	}
}

func TestUnitsSortByServiceThenByNumber(t *testing.T) {
	got := []string{"b/10", "nonsense", "b/9", "a-b/0", "a/100", "", "a/2", "blog-0/1"}
	SortUnits(got)
	want := []string{"a/2", "a/100", "a-b/0", "b/9", "b/10", "blog-0/1", "", "nonsense"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestURLs(t *testing.T) {
	for text, want := range map[string]URL{
		"local:precise/mysql-0":    {"precise", "mysql", 0},
		"local:noble/my-blog2-17":  {"noble", "my-blog2", 17},
		"local:a/b-201105311725":   {"a", "b", 201105311725},
		"local:jammy/not-a-name-5": {"jammy", "not-a-name", 5},
	} {
		got, err := ParseURL(text)
		if err != nil || got != want || got.String() != text {
			t.Errorf("%q became %+v (%s), %v", text, got, got, err)
		}
	}
	for text, complaint := range map[string]string{
		"cs:precise/mysql-7":          "write ch:NAME for a charm from the store",
		"ch:mysql":                    "write ch:NAME for a charm from the store",
		"http://x/mysql":              "write ch:NAME for a charm from the store",
		"mysql":                       "want local:SERIES/NAME-REVISION",
		"precise/mysql-7":             "want local:SERIES/NAME-REVISION",
		"local:mysql-7":               "want local:SERIES/NAME-REVISION",
		"local:precise/mysql":         "want local:SERIES/NAME-REVISION",
		"local:precise/mysql-07":      "invalid charm name",
		"local:precise/mysql--7":      "invalid charm name",
		"local:precise/x/mysql-7":     "invalid charm name",
		"local:../mysql-7":            "invalid series name",
		"local:precise/mysql-9e9":     "want local:",
		"":                            "invalid charm name",
		"local:":                      "invalid charm name",
		"local:p/m-99999999999999999": "invalid charm name",
	} {
		if got, err := ParseURL(text); err == nil || !strings.Contains(err.Error(), complaint) {
			t.Errorf("%q became %+v, %v; want an error with %q", text, got, err, complaint)
		}
	}
}

func TestRefs(t *testing.T) {
	for text, want := range map[string]Ref{
		"mysql":                 {"", "mysql", -1},
		"mysql-3":               {"", "mysql", 3},
		"precise/mysql":         {"precise", "mysql", -1},
		"local:mysql":           {"", "mysql", -1},
		"local:precise/mysql-3": {"precise", "mysql", 3},
	} {
		if got, err := ParseRef(text); got != want || err != nil {
			t.Errorf("%q became %+v, %v", text, got, err)
		}
	}
}

// TestNameForms compares the checks of names with regular expressions.
func TestNameForms(t *testing.T) {
	forms := []struct {
		is   func(string) bool
		form *regexp.Regexp
	}{
		{isCharmName, regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]*[a-z][a-z0-9]*)*$`)},
		{isDashedName, regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)},
		{isRelationName, regexp.MustCompile(`^[a-z][a-z0-9]*([_-][a-z0-9]+)*$`)},
	}
	var check func(name string, more int)
	check = func(name string, more int) {
		for i, f := range forms {
			if f.is(name) != f.form.MatchString(name) {
				t.Errorf("form %d: %q is one: %t", i, name, f.is(name))
			}
		}
		for _, c := range "b7-_A" {
			if more > 0 {
				check(name+string(c), more-1)
			}
		}
	}
	check("", 6)
	check("é", 0)
	check("a\n", 0)
}
