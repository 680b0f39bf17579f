package release

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/go-github/v74/github"

	"bijou/updater/record"
)

// gitHub is a repository on GitHub or on a GitHub Enterprise server.
type gitHub struct {
	assetClient
	owner, name string

	// list returns one page of the releases and the number of the next page, or 0 if this was the last. It
	// is a function because with a client in a field, the linker would keep every method of GitHub's API.
	list func(ctx context.Context, page int) (found []Release, next int, err error)
}

// newGitHub returns the publisher for a repository on GitHub or on a GitHub Enterprise server. files is
// the client for the files of releases. The client for the API shares its connections, and caches responses.
func newGitHub(c record.Config, files *http.Client) (*gitHub, error) {
	owner, name, _ := strings.Cut(c.GitHubRepository, "/")
	header := http.Header{}
	client := github.NewClient(newETagClient(files))

	if c.GitHubToken != "" {
		header.Set("Authorization", "Bearer "+c.GitHubToken)
		client = client.WithAuthToken(c.GitHubToken)
	}

	// Unless the URL already names an API, as https://api.github.com/ does, WithEnterpriseURLs adds the path
	// /api/v3/ of a GitHub Enterprise server.
	client, err := client.WithEnterpriseURLs(c.GitHubURL, c.GitHubURL)
	if err != nil {
		return nil, fmt.Errorf("cannot use github-url: %w", err)
	}

	list := func(ctx context.Context, page int) (found []Release, next int, err error) {
		all, resp, err := client.Repositories.ListReleases(ctx, owner, name, &github.ListOptions{PerPage: 100, Page: page})
		if err != nil {
			return nil, 0, err
		}

		for _, one := range all {
			found = append(found, convertRelease(one, c.GitHubToken != ""))
		}
		return found, resp.NextPage, nil
	}

	return &gitHub{
		assetClient: assetClient{client: files, header: header},
		owner:       owner,
		name:        name,
		list:        list,
	}, nil
}

// Releases lists the releases of all pages.
func (g *gitHub) Releases(ctx context.Context) ([]Release, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	var all []Release

	for page := 0; ; {
		found, next, err := g.list(ctx, page)
		if err != nil {
			return nil, classifyGitHub(fmt.Errorf("cannot list the releases of %s/%s: %w", g.owner, g.name, err))
		}

		all = append(all, found...)
		// After the last page, next is 0. Pages that do not increase would never end.
		if next <= page {
			return all, nil
		}
		page = next
	}
}

// convertRelease converts a release from GitHub's API. If there is a token, it uses the API's URL of each file
// that has one, which also works for private repositories. Otherwise it uses the file's public URL. Requests
// for public URLs do not count against the rate limit.
func convertRelease(r *github.RepositoryRelease, hasToken bool) Release {
	one := Release{Tag: r.GetTagName(), Draft: r.GetDraft(), PreRelease: r.GetPrerelease()}
	for _, a := range r.Assets {
		address := a.GetBrowserDownloadURL()
		if hasToken && a.GetURL() != "" {
			address = a.GetURL()
		}
		one.Assets = append(one.Assets, Asset{Name: a.GetName(), URL: address, Size: int64(a.GetSize())})
	}

	return one
}

// classifyGitHub returns a SourceError whose kind depends on the API's answer.
func classifyGitHub(err error) error {
	if limit, ok := errors.AsType[*github.RateLimitError](err); ok {
		return SourceError{Kind: Limited, NotBefore: limit.Rate.Reset.Time, Err: err}
	}
	if abuse, ok := errors.AsType[*github.AbuseRateLimitError](err); ok {
		return SourceError{Kind: Limited, RetryAfter: abuse.GetRetryAfter(), Err: err}
	}
	if answer, ok := errors.AsType[*github.ErrorResponse](err); ok && answer.Response != nil {
		failed := answerError(answer.Response)
		failed.Err = err
		return failed
	}

	// The server has answered, but not as GitHub's API does.
	_, isNotJSON := errors.AsType[*json.SyntaxError](err)
	_, isOtherJSON := errors.AsType[*json.UnmarshalTypeError](err)
	if isNotJSON || isOtherJSON {
		return SourceError{Kind: NoReleases, Err: err}
	}

	return SourceError{Kind: Unreachable, Err: err}
}
