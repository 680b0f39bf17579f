package github

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

// releaseDoc and assetDoc are the parts of GitHub's JSON that the updater reads.
type releaseDoc struct {
	TagName    string     `json:"tag_name"`
	Draft      bool       `json:"draft"`
	Prerelease bool       `json:"prerelease"`
	Assets     []assetDoc `json:"assets"`
}

type assetDoc struct {
	Name               string `json:"name"`
	Size               int    `json:"size"`
	URL                string `json:"url"`
	BrowserDownloadURL string `json:"browser_download_url"`
}

// list sends a page of the list of releases.
func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count.Lists++
	if s.spoiled(w) || s.forbidden(w, r) || s.exhausted(w) {
		return
	}
	page, _ := strconv.Atoi(r.URL.Query().Get("page"))
	page = max(page, 1)
	first := min((page-1)*s.pageSize, len(s.releases))
	last := min(first+s.pageSize, len(s.releases))
	docs := []releaseDoc{}
	for _, release := range s.releases[first:last] {
		docs = append(docs, s.doc(release))
	}
	if last < len(s.releases) {
		w.Header().Set("Link", fmt.Sprintf(`<%srepos/%s/releases?page=%d>; rel="next"`, s.URL(), Repository, page+1))
	}
	body, err := json.Marshal(docs)
	if err != nil {
		panic(err)
	}
	s.answer(w, r, body)
}

// answer sends the body. If the client has the body already, it answers 304, which does not count against the
// limit.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, body []byte) {
	etag := fmt.Sprintf(`W/"%x"`, sha256.Sum256(body))
	w.Header().Set("ETag", etag)
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	if r.Header.Get("If-None-Match") == etag {
		s.count.NotModified++
		s.tell(w)
		w.WriteHeader(http.StatusNotModified)
		return
	}
	if s.limit > 0 {
		s.limit--
	}
	s.tell(w)
	w.Write(body)
}

// tell adds headers with the number of remaining requests.
func (s *Server) tell(w http.ResponseWriter) {
	if s.limit >= 0 {
		w.Header().Set("X-RateLimit-Limit", "60")
		w.Header().Set("X-RateLimit-Remaining", strconv.Itoa(s.limit))
		w.Header().Set("X-RateLimit-Reset", strconv.FormatInt(s.reset, 10))
	}
}

// exhausted refuses requests above the limit.
func (s *Server) exhausted(w http.ResponseWriter) bool {
	if s.limit != 0 {
		return false
	}
	s.count.Refused++
	s.tell(w)
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(http.StatusForbidden)
	fmt.Fprint(w, `{"message": "API rate limit exceeded for 203.0.113.7.", "documentation_url": "https://docs.github.com/rest/rate-limit"}`)
	return true
}

// forbidden refuses clients without the token as GitHub does: not found.
func (s *Server) forbidden(w http.ResponseWriter, r *http.Request) bool {
	if s.token == "" || r.Header.Get("Authorization") == "Bearer "+s.token {
		return false
	}
	w.WriteHeader(http.StatusNotFound)
	fmt.Fprint(w, `{"message": "Not Found"}`)
	return true
}

// doc returns a release as GitHub's JSON.
func (s *Server) doc(r Release) releaseDoc {
	doc := releaseDoc{TagName: r.Tag, Draft: r.Draft, Prerelease: r.Pre}
	for _, name := range names(r.Files) {
		at := s.URL() + "files/" + r.Tag + "/" + name
		doc.Assets = append(doc.Assets, assetDoc{Name: name, Size: len(r.Files[name]), URL: at, BrowserDownloadURL: at})
	}
	return doc
}
