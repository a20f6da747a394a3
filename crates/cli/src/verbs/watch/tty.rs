//! The terminal while it is quell's: taken at the start, given back however the run ends.

use std::io::{self, Stdout};
use std::time::Duration;

use quell_analysis::live::Frame;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{self, Event};
use ratatui::crossterm::{cursor, execute, terminal};

use super::board::Board;
use super::screen::{self, Palette};
use super::view::{Then, View};

/// The whole terminal, and what is on it.
pub struct Tty {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    view: View,
    palette: Palette,
    board: Board,
    /// What a paused display shows.
    held: Option<Board>,
    _given_back: GivenBack,
}

impl std::fmt::Debug for Tty {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tty").field("view", &self.view).finish_non_exhaustive()
    }
}

impl Tty {
    /// Takes the terminal.
    ///
    /// # Errors
    /// Those of the terminal.
    pub fn take(view: View, title: String) -> io::Result<Self> {
        give_back_on_panic();
        let given_back = GivenBack;
        terminal::enable_raw_mode()?;
        execute!(io::stdout(), terminal::EnterAlternateScreen, cursor::Hide)?;
        let terminal = Terminal::new(CrosstermBackend::new(io::stdout()))?;
        let board = Board { title, ..Board::default() };
        let palette = Palette::of_environment();
        let mut tty = Self { terminal, view, palette, board, held: None, _given_back: given_back };
        tty.draw()?;
        Ok(tty)
    }

    /// Shows a new frame, or keeps it for the end of the pause.
    ///
    /// # Errors
    /// Those of the terminal.
    pub fn show(&mut self, frame: Frame) -> io::Result<()> {
        self.board.take(frame);
        if self.held.is_none() { self.draw() } else { Ok(()) }
    }

    /// Does what the keys since the last call say; whether one of them means the end.
    ///
    /// # Errors
    /// Those of the terminal.
    pub fn keys(&mut self) -> io::Result<bool> {
        let mut changed = false;
        while event::poll(Duration::ZERO)? {
            match event::read()? {
                Event::Key(key) => match self.view.key(key) {
                    Then::Quit => return Ok(true),
                    Then::Draw => changed = true,
                    Then::Stay => {}
                },
                Event::Resize(..) => changed = true,
                _ => {}
            }
        }
        if self.view.paused != self.held.is_some() {
            self.held = self.view.paused.then(|| self.board.clone());
        }
        if changed { self.draw().map(|()| false) } else { Ok(false) }
    }

    /// Sleeps until a key, at most so long; whether the terminal can be waited for.
    pub fn doze(&self, length: Duration) -> bool {
        event::poll(length).is_ok()
    }

    fn draw(&mut self) -> io::Result<()> {
        let board = self.held.as_ref().unwrap_or(&self.board);
        let (view, palette) = (&mut self.view, self.palette);
        self.terminal.draw(|area| screen::draw(area, board, view, palette))?;
        Ok(())
    }
}

/// Gives the terminal back when it is dropped.
struct GivenBack;

impl Drop for GivenBack {
    fn drop(&mut self) {
        give_back();
    }
}

fn give_back() {
    // There is nobody to tell where even this fails.
    let _ = execute!(io::stdout(), terminal::LeaveAlternateScreen, cursor::Show);
    let _ = terminal::disable_raw_mode();
}

/// The message of a panic belongs on the normal screen.
fn give_back_on_panic() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        give_back();
        before(panic);
    }));
}
