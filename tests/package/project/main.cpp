void everything(const char* library);

int main(int, char** words) {
  everything(words[1]);
  return 0;
}
