//! What is wrong with a report, with line numbers, and without drowning the reader.

/// Problems of one file. The first [`LISTED_MAX`] are kept word by word, the others counted.
#[derive(Debug)]
pub struct Problems {
    file: String,
    listed: Vec<String>,
    more: u64,
}

/// A report cut or mangled by a tool has a few; one with more has the same one again and again.
const LISTED_MAX: usize = 50;

impl Problems {
    /// None yet.
    pub fn new(file: &str) -> Self {
        Self { file: file.to_owned(), listed: Vec::new(), more: 0 }
    }

    /// A problem of one line, counted from 1.
    pub fn line(&mut self, line: usize, what: &str) {
        if self.listed.len() < LISTED_MAX {
            self.listed.push(format!("{}:{line}: {what}", self.file));
        } else {
            self.more += 1;
        }
    }

    /// A problem of the file.
    pub fn file(&mut self, what: &str) {
        self.listed.push(format!("{}: {what}", self.file));
    }

    /// One sentence each.
    pub fn into_sentences(mut self) -> Vec<String> {
        if self.more > 0 {
            self.listed.push(format!("{}: further lines with problems: {}", self.file, self.more));
        }
        self.listed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_are_listed_and_the_others_counted() {
        let mut problems = Problems::new("a.aprof");
        (1..=60).for_each(|line| problems.line(line, "no such tag"));
        problems.file("no version");
        let sentences = problems.into_sentences();
        assert_eq!(sentences.len(), 52);
        assert_eq!(sentences[0], "a.aprof:1: no such tag");
        assert_eq!(sentences[50..], ["a.aprof: no version", "a.aprof: further lines with problems: 10"]);
    }
}
