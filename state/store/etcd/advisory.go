package etcd

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// advisory is a fault of etcd that lets a user with a role access more than the role grants.
type advisory struct {
	id    string
	fixed map[int]int // the first fixed patch release, by minor release of etcd 3
}

// roleAdvisories returns the advisories about faults that make etcd's roles ineffective. {4: 42} means that
// 3.4.42 is the first release of etcd 3.4 without the fault.
func roleAdvisories() []advisory {
	return []advisory{
		// Nested transactions are not checked.
		{"GHSA-rfx7-8w68-q57q", map[int]int{4: 42, 5: 28, 6: 9}},
		// Previous values and leases in nested transactions are not checked.
		{"GHSA-x35m-3gp4-4fh5", map[int]int{4: 44, 5: 30, 6: 11}},
		// A watch with an open range also delivers keys that the role does not grant.
		{"GHSA-xg4h-6gfc-h4m8", map[int]int{5: 33, 6: 14, 7: 1}},
	}
}

// fixedVersions lists, for each minor release in which all of these faults were fixed, the first version
// without them.
const fixedVersions = "3.5.33, 3.6.14, 3.7.1"

// concerns reports whether a release has the fault. A minor release that is newer than all fixed minor releases
// never had the fault. An older minor release that was not fixed still has the fault.
func (a advisory) concerns(minor, patch int) bool {
	newest := slices.Max(slices.Collect(maps.Keys(a.fixed)))
	if minor > newest {
		return false
	}
	firstFixed, wasFixed := a.fixed[minor]
	return !wasFixed || patch < firstFixed
}

// advisoriesFor returns the ids of the advisories about roles that concern a server of this version. All of them
// are about etcd 3. It returns nothing for a different major version, or for a version that it cannot parse.
func advisoriesFor(version string) (ids []string) {
	major, afterMajor, _ := strings.Cut(version, ".")
	minorText, patchText, _ := strings.Cut(afterMajor, ".")
	minor, err := strconv.Atoi(minorText)
	if err != nil || major != "3" {
		return nil
	}

	// A suffix can follow the number of the patch, as in 3.6.0-rc.1.
	isNotDigit := func(r rune) bool { return r < '0' || r > '9' }
	if i := strings.IndexFunc(patchText, isNotDigit); i >= 0 {
		patchText = patchText[:i]
	}
	patch, err := strconv.Atoi(patchText)
	if err != nil {
		return nil
	}

	for _, a := range roleAdvisories() {
		if a.concerns(minor, patch) {
			ids = append(ids, a.id)
		}
	}
	return ids
}

// Advisories queries each endpoint once for its version. It returns a warning for each version in which
// roles do not restrict users. It skips endpoints that do not answer in time.
func (d *db) Advisories(ctx context.Context) (warnings []string) {
	byVersion := map[string][]string{} // endpoints
	statuses, errs := d.queryStatus(ctx, d.config.endpoints)
	for i, s := range statuses {
		if errs[i] == nil {
			byVersion[s.Version] = append(byVersion[s.Version], d.config.endpoints[i])
		}
	}

	for _, version := range slices.Sorted(maps.Keys(byVersion)) {
		ids := advisoriesFor(version)
		if len(ids) == 0 {
			continue
		}
		warnings = append(warnings, fmt.Sprintf("etcd %s at %s lets users read and write keys that their role does not grant (%s): update etcd to one of %s, or newer",
			version, strings.Join(byVersion[version], ", "), strings.Join(ids, ", "), fixedVersions))
	}

	return warnings
}
