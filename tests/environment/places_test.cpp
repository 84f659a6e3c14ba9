// Where the environment lies, and layers.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "environment/made_up.h"

using namespace kiln;
using namespace kiln::test;
namespace fs = std::filesystem;

TEST_CASE("the environment lies where KILN_ENV says, else in the user's folder for caches") {
  const rt::LayerPlace of_xdg{"/x/kiln", true, {"/x", "/x/kiln"}}, of_home{"/h/.cache/kiln", true, {"/h/.cache", "/h/.cache/kiln"}};
  const std::string nowhere = "neither HOME nor XDG_CACHE_HOME says where";
  const struct {
    const char *named, *xdg, *home;
    rt::Places places;
  } rows[] = {
      {"", "/x", "/h", {false, "", {of_xdg}}},
      {"", "/x/", "/h", {false, "", {of_xdg}}},
      {"", "", "/h", {false, "", {of_home}}},
      {"", "relative", "/h", {false, "", {of_home}}},
      {"", "", "", {false, nowhere, {}}},
      {"", "relative", "relative", {false, nowhere, {}}},
      {"off", "/x", "/h", {true, "", {}}},
      {"/e", "/x", "/h", {false, "", {{"/e", true, {"/e"}}}}},
      {"/e/../f/", "/x", "/h", {false, "", {{"/f", true, {"/f"}}}}},
      {"e", "/x", "/h", {false, "", {{"/here/e", true, {"/here/e"}}}}},
      {"/e:/r:s", "/x", "/h", {false, "", {{"/e", true, {"/e"}}, {"/r"}, {"/here/s"}}}},
      {":/r", "/x", "/h", {false, "", {of_xdg, {"/r"}}}},
      {":/r", "", "", {false, nowhere, {{"/r"}}}},
      {"off:/r", "/x", "/h", {false, "", {{"/r"}}}},
      {"/e:", "/x", "/h", {false, "", {{"/e", true, {"/e"}}}}},
  };
  for (const auto& row : rows) {
    CAPTURE(row.named);
    CAPTURE(row.xdg);
    CHECK(rt::environment_places(row.named, row.xdg, row.home, "/here") == row.places);
  }
}

TEST_CASE("folders are made for this user alone, and only below one that is there") {
  const TempFolder folder;
  const std::string above = folder.file("cache"), path = above + "/kiln";
  CHECK(rt::make_folders({path, true, {above, path}}) == "");
  for (const std::string& made : {above, path}) {
    struct stat s{};
    REQUIRE(stat(made.c_str(), &s) == 0);
    CHECK((s.st_mode & 07777) == 0700);
  }
  CHECK(rt::make_folders({path, true, {above, path}}) == "");
  const std::string none = folder.file("none") + "/.cache";
  CHECK(rt::make_folders({none + "/kiln", true, {none, none + "/kiln"}}).starts_with("'" + none + "' cannot be made: "));
  CHECK_FALSE(fs::exists(folder.file("none")));
  CHECK(rt::make_folders({folder.write("file", "x"), true, {folder.file("file")}}) == "it is a file, and has to be a folder");
}

TEST_CASE("layers below are read, never written, and what is not there is stored above") {
  const TempFolder top, below, exported;
  { CHECK(Opened(below.path()).store(made_up_key("one"), "code of one")); }
  const std::string bytes = read_file(file_in(below));
  fs::copy_file(file_in(below), exported.file("some.kernels"));
  for (const std::string& layer : {below.path(), exported.file("some.kernels")}) {
    CAPTURE(layer);
    fs::remove(file_in(top));
    Opened env(top.path() + ":" + layer);
    CHECK(env.find(made_up_key("one")) == "code of one");
    CHECK(env.find(made_up_key("two")) == "");
    CHECK(env.store(made_up_key("two"), "code of two"));
    CHECK(env.find(made_up_key("two")) == "code of two");
    CHECK(env.warnings.empty());
  }
  CHECK(read_file(file_in(below)) == bytes);
  CHECK(std::distance(fs::directory_iterator(below.path()), fs::directory_iterator()) == 1);
  CHECK(Opened(top.path()).find(made_up_key("one")) == "");

  Opened only_read("off:" + below.path());
  CHECK(only_read.find(made_up_key("one")) == "code of one");
  CHECK_FALSE(only_read.store(made_up_key("two"), "code of two"));
  CHECK(only_read.warnings.empty());
}

TEST_CASE("a layer that somebody writes meanwhile is read as it is") {
  const TempFolder shared;
  Opened writer(shared.path());
  CHECK(writer.store(made_up_key("one"), "code of one"));  // in what lies beside the file
  Opened reader("off:" + shared.path());
  CHECK(reader.find(made_up_key("one")) == "code of one");
  CHECK(writer.store(made_up_key("two"), "code of two"));
  CHECK(reader.find(made_up_key("two")) == "code of two");
}

TEST_CASE("a layer that cannot be used is told once, and the others are") {
  const TempFolder top, damaged, empty;
  damaged.write(rt::kStoreName, std::string(3000, 'x'));
  for (const std::string& layer : {damaged.path(), empty.path(), empty.file("none")}) {
    CAPTURE(layer);
    Opened env(top.path() + ":" + layer);
    CHECK(env.store(made_up_key("one"), "code of one"));
    for (int i = 0; i < 3; ++i) CHECK(env.find(made_up_key("other")) == "");
    CHECK(env.find(made_up_key("one")) == "code of one");
    REQUIRE(env.warnings.size() == 1);
    CHECK(env.warnings[0].find("the environment '" + layer + "' cannot be used: ") == 0);
    CHECK(env.warnings[0].find("KILN_ENV") != std::string::npos);
  }
  CHECK(read_file(file_in(damaged)) == std::string(3000, 'x'));  // not ours to set aside
}

TEST_CASE("what others may have written is not executed") {
  const auto refused = [](const std::string& folder, const std::string& named, const char* why) {
    CAPTURE(why);
    Opened env(named);
    CHECK(env.find(made_up_key()) == "");
    CHECK_FALSE(env.store(made_up_key(), "code"));
    REQUIRE(env.warnings.size() == 1);
    CHECK_MESSAGE(env.warnings[0].find(why) != std::string::npos, env.warnings[0]);
    CHECK(env.warnings[0].find(folder) != std::string::npos);
  };
  for (const bool only_read : {false, true}) {
    const TempFolder folder;
    { CHECK(Opened(folder.path()).store(made_up_key(), "code")); }
    const std::string named = (only_read ? "off:" : "") + folder.path();
    chmod(folder.path().c_str(), 0770);
    refused(folder.path(), named, "others may write what is executed from it (chmod go-w '");
    chmod(folder.path().c_str(), 01777);
    refused(folder.path(), named, "others may write what is executed from it (chmod go-w '");
    chmod(folder.path().c_str(), 0755);
    chmod(file_in(folder).c_str(), 0664);
    refused(folder.path(), named, "environment.db': others may write what is executed from it");
    chmod(file_in(folder).c_str(), 0644);
    CHECK(Opened(named).find(made_up_key()) == "code");
    if (geteuid() != 0) continue;  // nobody else can give a file away
    REQUIRE(chown(file_in(folder).c_str(), 65534, 65534) == 0);
    refused(folder.path(), named, "it belongs to another user");
    REQUIRE(chown(file_in(folder).c_str(), 0, 0) == 0);
    REQUIRE(chown(folder.path().c_str(), 65534, 65534) == 0);
    refused(folder.path(), named, "it belongs to another user");
    REQUIRE(chown(folder.path().c_str(), 0, 0) == 0);
  }
}
